# Programs of tests/bench, for the host's architecture.
BENCHES := memory_costs memory_herd

define BENCH_RULES
$(OUT)/bench/$(1): bench/$(1).c $(wildcard include/*) bench/module.mk
	@mkdir -p $$(@D)
	$(ZIG) -target $(call zig_target,$(HOST_ARCH)) $(CFLAGS) -s -o $$@ $$(filter %.c,$$^) -ldl -pthread
ALL += $(OUT)/bench/$(1)
endef

$(foreach bench,$(BENCHES),$(eval $(call BENCH_RULES,$(bench))))

$(OUT)/bench/instant_driver/libcuda.so.1: bench/instant_driver.c $(wildcard include/*) bench/module.mk
	@mkdir -p $(@D)
	$(ZIG) -target $(call zig_target,$(HOST_ARCH)) $(CFLAGS) -s -shared -Wl,-soname,libcuda.so.1 -Wl,-Bsymbolic \
	    -o $@ $(filter %.c,$^)
ALL += $(OUT)/bench/instant_driver/libcuda.so.1

# The sanitized guard leaves dlsym alone, so here the driver is linked.
define BENCH_SANITIZED
$(OUT)/$(1)/bench/memory_herd: bench/memory_herd.c $(wildcard include/*) bench/module.mk \
                               $(OUT)/$(1)/simulated_driver/libcuda.so.1
	@mkdir -p $$(@D)
	gcc $(CFLAGS) -g -DLINKED -fsanitize=$(2) -o $$@ $$(filter %.c %.so.1,$$^) -pthread
SANITIZED += $(OUT)/$(1)/bench/memory_herd
endef
$(eval $(call BENCH_SANITIZED,asan,address -fsanitize=undefined))
$(eval $(call BENCH_SANITIZED,tsan,thread))
