# The virtual card: two driver libraries and the nvidia-smi look-alike, for both architectures and,
# for the host's, under gcc's sanitizers.
SIM_DIR     := simulated_driver
SIM_SHARED  := $(wildcard $(SIM_DIR)/card*.c)
SIM_CUDA    := $(SIM_SHARED) $(wildcard $(SIM_DIR)/cuda_*.c)
SIM_NVML    := $(SIM_SHARED) $(wildcard $(SIM_DIR)/nvml_*.c)
SIM_SMI     := $(wildcard $(SIM_DIR)/nvidia_smi*.c)
SIM_HEADERS := $(wildcard $(SIM_DIR)/*.h $(SIM_DIR)/*.def include/*.h include/*.def)
SIM_WORK    := $(TOP)/tests/native/simulated_driver/programs/random_work.c
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

# Older drivers have fewer names: the same objects, linked with a version script that hides what came
# later. build/native/driver_<branch>/, for the host's architecture.
SIM_BRANCHES    := 440 470 535 580
SIM_CUDA_OF_440 := 10020
SIM_CUDA_OF_470 := 11040
SIM_CUDA_OF_535 := 12020
SIM_CUDA_OF_580 := 13000
SIM_OLD_ZIG     := $(ZIG) -target $(call zig_target,$(HOST_ARCH)) $(CFLAGS)
SIM_NAMES       := awk -f $(SIM_DIR)/names_until.awk

$(OUT)/simulated_driver/cuda.o: $(SIM_CUDA) $(SIM_HEADERS)
	@mkdir -p $(@D)
	$(SIM_OLD_ZIG) -r -o $@ $(SIM_CUDA)

$(OUT)/simulated_driver/nvml.o: $(SIM_NVML) $(SIM_HEADERS)
	@mkdir -p $(@D)
	$(SIM_OLD_ZIG) -r -o $@ $(SIM_NVML)

define SIM_BRANCH_RULES
$(OUT)/driver_$(1)/libcuda.so.1: $(OUT)/simulated_driver/cuda.o
	@mkdir -p $$(@D)
	$(SIM_NAMES) -v at=3 -v name=4 -v newest=$(SIM_CUDA_OF_$(1)) $(SIM_DIR)/cuda_exports.def $(SIM_DIR)/cuda_unsupported.def > $$@.map
	$(SIM_OLD_ZIG) $$(SIM_LDFLAGS) -Wl,--version-script=$$@.map -s -o $$@ $$<

$(OUT)/driver_$(1)/libnvidia-ml.so.1: $(OUT)/simulated_driver/nvml.o
	@mkdir -p $$(@D)
	$(SIM_NAMES) -v at=3 -v name=2 -v newest=$(1) $(SIM_DIR)/nvml_exports.def > $$@.map
	$(SIM_OLD_ZIG) $$(SIM_LDFLAGS) -Wl,--version-script=$$@.map -s -o $$@ $$<

ALL += $(OUT)/driver_$(1)/libcuda.so.1 $(OUT)/driver_$(1)/libnvidia-ml.so.1
endef

$(foreach branch,$(SIM_BRANCHES),$(eval $(call SIM_BRANCH_RULES,$(branch))))

# The tests' program that gives the card work, here and under the sanitizers.
$(OUT)/samples/random_work: $(SIM_WORK) $(PACKAGE)/$(HOST_ARCH)/simulated_driver/libcuda.so.1 $(SIM_HEADERS)
	@mkdir -p $(@D)
	$(SIM_OLD_ZIG) -I$(SIM_DIR) -s -o $@ $(filter %.c %.so.1,$^) -lpthread

ALL += $(OUT)/samples/random_work

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

$(OUT)/$(1)/samples/random_work: $(SIM_WORK) $(OUT)/$(1)/simulated_driver/libcuda.so.1 $(SIM_HEADERS)
	@mkdir -p $$(@D)
	gcc $(CFLAGS) -I$(SIM_DIR) -g $(2) -o $$@ $$(filter %.c %.so.1,$$^) -pthread

SANITIZED += $(addprefix $(OUT)/$(1)/simulated_driver/,$(SIM_FILES)) $(OUT)/$(1)/samples/random_work
endef

$(foreach arch,$(ARCHES),$(eval $(call SIM_RULES,$(arch))))
$(eval $(call SIM_SANITIZE_RULES,asan,-fsanitize=address,undefined -fno-omit-frame-pointer))
$(eval $(call SIM_SANITIZE_RULES,tsan,-fsanitize=thread))
