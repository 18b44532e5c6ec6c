# The virtual card: two driver libraries and the nvidia-smi look-alike, for both architectures and,
# for the host's, under gcc's sanitizers.
SIM_DIR     := simulated_driver
SIM_SHARED  := $(SIM_DIR)/cards_conf.c $(SIM_DIR)/card_account.c
SIM_CUDA    := $(SIM_SHARED) $(wildcard $(SIM_DIR)/cuda_*.c)
SIM_NVML    := $(SIM_SHARED) $(wildcard $(SIM_DIR)/nvml_*.c)
SIM_SMI     := $(wildcard $(SIM_DIR)/nvidia_smi*.c)
SIM_HEADERS := $(wildcard $(SIM_DIR)/*.h $(SIM_DIR)/*.def include/*.h include/*.def)
SIM_FILES   := libcuda.so.1 libnvidia-ml.so.1 nvidia-smi

# -Bsymbolic and nodelete: a preloaded library must not answer calls inside the driver, and the lock
# files must stay open when a program unloads it.
SIM_LDFLAGS = -shared -Wl,-soname,$(notdir $@) -Wl,-Bsymbolic -Wl,-z,defs -Wl,-z,nodelete

define SIM_RULES
$(PACKAGE)/$(1)/simulated_driver/libcuda.so.1: $(SIM_CUDA) $(SIM_HEADERS)
	@mkdir -p $$(@D)
	$(ZIG) -target $(call zig_target,$(1)) $(CFLAGS) $$(SIM_LDFLAGS) -s -o $$@ $(SIM_CUDA)

$(PACKAGE)/$(1)/simulated_driver/libnvidia-ml.so.1: $(SIM_NVML) $(SIM_HEADERS)
	@mkdir -p $$(@D)
	$(ZIG) -target $(call zig_target,$(1)) $(CFLAGS) $$(SIM_LDFLAGS) -s -o $$@ $(SIM_NVML)

$(PACKAGE)/$(1)/simulated_driver/nvidia-smi: $(SIM_SMI) $(SIM_HEADERS)
	@mkdir -p $$(@D)
	$(ZIG) -target $(call zig_target,$(1)) $(CFLAGS) -fPIE -pie -s -o $$@ $(SIM_SMI) -ldl

ALL += $(addprefix $(PACKAGE)/$(1)/simulated_driver/,$(SIM_FILES))
endef

define SIM_SANITIZE_RULES
$(OUT)/$(1)/simulated_driver/libcuda.so.1: $(SIM_CUDA) $(SIM_HEADERS)
	@mkdir -p $$(@D)
	gcc $(CFLAGS) -g $(2) $$(SIM_LDFLAGS) -o $$@ $(SIM_CUDA) -pthread

$(OUT)/$(1)/simulated_driver/libnvidia-ml.so.1: $(SIM_NVML) $(SIM_HEADERS)
	@mkdir -p $$(@D)
	gcc $(CFLAGS) -g $(2) $$(SIM_LDFLAGS) -o $$@ $(SIM_NVML) -pthread

$(OUT)/$(1)/simulated_driver/nvidia-smi: $(SIM_SMI) $(SIM_HEADERS)
	@mkdir -p $$(@D)
	gcc $(CFLAGS) -g $(2) -o $$@ $(SIM_SMI) -ldl

SANITIZED += $(addprefix $(OUT)/$(1)/simulated_driver/,$(SIM_FILES))
endef

$(foreach arch,$(ARCHES),$(eval $(call SIM_RULES,$(arch))))
$(eval $(call SIM_SANITIZE_RULES,asan,-fsanitize=address,undefined -fno-omit-frame-pointer))
$(eval $(call SIM_SANITIZE_RULES,tsan,-fsanitize=thread))
