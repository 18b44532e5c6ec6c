# Sample programs that use only the CUDA driver API, for the host's architecture. Each is built with
# three doors to the driver: linked, dlsym (…_dlsym) and cuGetProcAddress (…_getproc).
SAMPLES_DIR     := samples
SAMPLES         := alloc_until_refused random_alloc device_query benchmark
SAMPLES_SHARED  := $(SAMPLES_DIR)/doors.c $(SAMPLES_DIR)/memory_kinds.c
SAMPLES_HEADERS := $(wildcard $(SAMPLES_DIR)/*.h include/*.h include/*.def)
SAMPLES_LIBRARY := $(PACKAGE)/$(HOST_ARCH)/simulated_driver/libcuda.so.1

define SAMPLE_RULES
$(OUT)/samples/$(1): $(SAMPLES_DIR)/$(1).c $(SAMPLES_SHARED) $(SAMPLES_HEADERS) $(SAMPLES_LIBRARY)
	@mkdir -p $$(@D)
	$(ZIG) -target $(call zig_target,$(HOST_ARCH)) $(CFLAGS) -s -DDOOR_LINKED -o $$@ $$(filter %.c,$$^) $(SAMPLES_LIBRARY)

$(OUT)/samples/$(1)_dlsym: $(SAMPLES_DIR)/$(1).c $(SAMPLES_SHARED) $(SAMPLES_HEADERS)
	@mkdir -p $$(@D)
	$(ZIG) -target $(call zig_target,$(HOST_ARCH)) $(CFLAGS) -s -DDOOR_DLSYM -o $$@ $$(filter %.c,$$^) -ldl

$(OUT)/samples/$(1)_getproc: $(SAMPLES_DIR)/$(1).c $(SAMPLES_SHARED) $(SAMPLES_HEADERS)
	@mkdir -p $$(@D)
	$(ZIG) -target $(call zig_target,$(HOST_ARCH)) $(CFLAGS) -s -DDOOR_GETPROC -o $$@ $$(filter %.c,$$^) -ldl

ALL += $(OUT)/samples/$(1) $(OUT)/samples/$(1)_dlsym $(OUT)/samples/$(1)_getproc
endef

$(foreach sample,$(SAMPLES),$(eval $(call SAMPLE_RULES,$(sample))))

$(OUT)/samples/run.sh: $(SAMPLES_DIR)/run.sh
	@mkdir -p $(@D)
	install -m 0755 $< $@

ALL += $(OUT)/samples/run.sh

define SAMPLE_SANITIZE_RULES
$(OUT)/$(1)/samples/random_alloc: $(SAMPLES_DIR)/random_alloc.c $(SAMPLES_SHARED) $(SAMPLES_HEADERS) $(OUT)/$(1)/simulated_driver/libcuda.so.1
	@mkdir -p $$(@D)
	gcc $(CFLAGS) -g $(2) -DDOOR_LINKED -o $$@ $$(filter %.c %.so.1,$$^) -pthread

SANITIZED += $(OUT)/$(1)/samples/random_alloc
endef

$(eval $(call SAMPLE_SANITIZE_RULES,asan,-fsanitize=address,undefined -fno-omit-frame-pointer))
$(eval $(call SAMPLE_SANITIZE_RULES,tsan,-fsanitize=thread))

# The programs of the demo's image travel with the package.
SAMPLES_PACKAGED := alloc_until_refused benchmark

define SAMPLE_PACKAGE_RULE
$(PACKAGE)/$(1)/samples/$(2): $(SAMPLES_DIR)/$(2).c $(SAMPLES_SHARED) $(SAMPLES_HEADERS)
	@mkdir -p $$(@D)
	$(ZIG) -target $(call zig_target,$(1)) $(CFLAGS) -s -DDOOR_DLSYM -o $$@ $$(filter %.c,$$^) -ldl

ALL += $(PACKAGE)/$(1)/samples/$(2)
endef

$(foreach arch,$(ARCHES),$(foreach sample,$(SAMPLES_PACKAGED),$(eval $(call SAMPLE_PACKAGE_RULE,$(arch),$(sample)))))

define SAMPLE_SCRIPT_RULE
$(PACKAGE)/$(1)/samples/run.sh: $(SAMPLES_DIR)/run.sh
	@mkdir -p $$(@D)
	install -m 0755 $$< $$@

ALL += $(PACKAGE)/$(1)/samples/run.sh
endef

$(foreach arch,$(ARCHES),$(eval $(call SAMPLE_SCRIPT_RULE,$(arch))))

# Keeps a card busy; it finds the driver by itself. The package's copy is for both architectures.
define SAMPLE_BUSY_RULE
$(PACKAGE)/$(1)/samples/busy: $(SAMPLES_DIR)/busy.c $(SAMPLES_HEADERS)
	@mkdir -p $$(@D)
	$(ZIG) -target $(call zig_target,$(1)) $(CFLAGS) -s -o $$@ $(SAMPLES_DIR)/busy.c -ldl -pthread

ALL += $(PACKAGE)/$(1)/samples/busy
endef

$(foreach arch,$(ARCHES),$(eval $(call SAMPLE_BUSY_RULE,$(arch))))

define SAMPLE_BUSY_SANITIZE_RULE
$(OUT)/$(1)/samples/busy: $(SAMPLES_DIR)/busy.c $(SAMPLES_HEADERS) $(OUT)/$(1)/simulated_driver/libcuda.so.1
	@mkdir -p $$(@D)
	gcc $(CFLAGS) -g $(2) -DDOOR_LINKED -o $$@ $$(filter %.c %.so.1,$$^) -pthread

SANITIZED += $(OUT)/$(1)/samples/busy
endef

$(eval $(call SAMPLE_BUSY_SANITIZE_RULE,asan,-fsanitize=address -fsanitize=undefined -fno-omit-frame-pointer))
$(eval $(call SAMPLE_BUSY_SANITIZE_RULE,tsan,-fsanitize=thread))

# Programs that find the libraries by themselves: NVML's view of the card's time, memory of pools.
SAMPLES_BY_DLOPEN := $(OUT)/samples/utilization $(OUT)/samples/pool_until_refused

$(SAMPLES_BY_DLOPEN): $(OUT)/samples/%: $(SAMPLES_DIR)/%.c $(SAMPLES_HEADERS)
	@mkdir -p $(@D)
	$(ZIG) -target $(call zig_target,$(HOST_ARCH)) $(CFLAGS) -s -o $@ $< -ldl

ALL += $(SAMPLES_BY_DLOPEN)
