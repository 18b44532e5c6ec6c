# The guard: one shared library a program never notices, for both architectures.
GUARD_SOURCES := $(sort $(wildcard guard/*.c))
GUARD_INPUTS  := $(GUARD_SOURCES) $(wildcard guard/*.h guard/*.S include/*) guard/module.mk
GUARD_LINK    := -shared -Wl,-soname,libcasaba_guard.so -Wl,-Bsymbolic \
                 -Wl,-z,now -Wl,-z,relro -Wl,-z,nodelete -Wl,-z,noexecstack
GUARD_CFLAGS  := $(CFLAGS) -D_GNU_SOURCE -ftls-model=initial-exec -Iguard
guard_library  = $(PACKAGE)/$(1)/libcasaba_guard.so
GUARD_NAMES    = sed -n 's/^HOOK([A-Z]*, *\([A-Za-z0-9_]*\),.*/\1;/p' include/hooks.def

$(OUT)/guard/exports.map: include/hooks.def guard/module.mk
	@mkdir -p $(@D)
	@{ echo '{ global: dlsym; dlvsym;'; $(GUARD_NAMES); echo 'local: *; };'; } > $@

define GUARD_FOR
$(call guard_library,$(1)): $(GUARD_INPUTS) $(OUT)/guard/exports.map
	@mkdir -p $$(@D)
	$(ZIG) -target $(call zig_target,$(1)) $(GUARD_CFLAGS) -s $(GUARD_LINK) \
	    -Wl,--version-script=$(OUT)/guard/exports.map -o $$@ \
	    $(GUARD_SOURCES) guard/stub_$(1).S
ALL += $(call guard_library,$(1))
endef
$(foreach arch,$(ARCHES),$(eval $(call GUARD_FOR,$(arch))))

# A sanitizer's own runtime looks names up before it is ready, so these variants leave dlsym and
# dlvsym to the C library: programs that link with the driver use them.
$(OUT)/guard/exports_sanitized.map: include/hooks.def guard/module.mk
	@mkdir -p $(@D)
	@{ echo '{ global:'; $(GUARD_NAMES); echo 'local: *; };'; } > $@

define GUARD_SANITIZED
$(OUT)/$(1)/libcasaba_guard.so: $(GUARD_INPUTS) $(OUT)/guard/exports_sanitized.map
	@mkdir -p $$(@D)
	gcc $(GUARD_CFLAGS) -g -fsanitize=$(2) $(GUARD_LINK) \
	    -Wl,--version-script=$(OUT)/guard/exports_sanitized.map -o $$@ $(GUARD_SOURCES)
SANITIZED += $(OUT)/$(1)/libcasaba_guard.so
endef
$(eval $(call GUARD_SANITIZED,asan,address -fsanitize=undefined))
$(eval $(call GUARD_SANITIZED,tsan,thread -Wno-tsan))
