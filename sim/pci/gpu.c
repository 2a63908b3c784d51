// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * A PCI Express function that looks like a GPU: ids, class, BARs, VFs and resets as the command
 * line says. It computes nothing. It is a shared library that is preloaded into the distribution's
 * own QEMU, which is built with modules and so exports the functions that this file calls:
 *
 *   LD_PRELOAD=gantry-gpu.so qemu-system-x86_64 ... -device gantry-gpu,device-id=0x2335,bus=port0
 *
 * A NVIDIA GPU's audio function, an NVSwitch and so on are the same device with another class and
 * other BARs. docs/simulated-machines.md lists the registers; tests/vm/programs uses them.
 */
// clang-format off: QEMU wants osdep.h first
#include "qemu/osdep.h"
// clang-format on

#include "hw/pci/msi.h"
#include "hw/pci/pci.h"
#include "hw/pci/pcie.h"
#include "hw/pci/pcie_sriov.h"
#include "hw/qdev-properties.h"
#include "qapi/error.h"
#include "qemu/module.h"
#include "qemu/units.h"
#include "qom/object.h"
#include "registers.h"

#define TYPE_GANTRY_GPU "gantry-gpu"
#define TYPE_GANTRY_GPU_VF "gantry-gpu-vf"

enum {
  BAR_COUNT = 6,
  PM_OFFSET = 0x60, /* places of the capabilities in configuration space */
  MSI_OFFSET = 0x68,
  EXPRESS_OFFSET = 0x80,
  AER_OFFSET = 0x100,
  ARI_OFFSET = 0x150,
  SRIOV_OFFSET = 0x160,
  SERIAL_OFFSET = 0x1b0,
};

typedef struct GantryGpu {
  PCIDevice pci;
  MemoryRegion memory[BAR_COUNT];

  /* properties */
  uint16_t vendor_id, device_id, class_id, subsystem_vendor_id, subsystem_id;
  uint8_t programming_interface, revision;
  uint32_t boot_id;
  uint64_t serial_number; /* 0: the capability is missing */
  uint64_t bar_size[BAR_COUNT];
  uint8_t wide_bars; /* bit N: BAR N is 64-bit and prefetchable */
  bool flr;
  uint16_t vfs, vf_device_id, vf_offset, vf_stride;
  uint64_t vf_bar0_size, vf_bar1_size;

  /* state that a reset clears, apart from the count of resets */
  uint32_t scratch, resets, dma_length, dma_status;
  uint64_t dma_address;
  bool wedged;
  uint8_t buffer[GANTRY_GPU_BUFFER_SIZE];
} GantryGpu;

DECLARE_INSTANCE_CHECKER(GantryGpu, GANTRY_GPU, TYPE_GANTRY_GPU)

/* The vendor's driver reads this second form of the id on newer chips. */
static uint32_t boot_id_42(uint32_t boot_id) {
  return (boot_id & 0x1ff00000) | (boot_id >> 4 & 0xf) << 16 | (boot_id & 0xf) << 12;
}

static bool in_buffer(hwaddr at, unsigned size) {
  return at >= GANTRY_GPU_BUFFER && at + size <= GANTRY_GPU_BUFFER + GANTRY_GPU_BUFFER_SIZE;
}

static uint64_t registers_read(void* opaque, hwaddr at, unsigned size) {
  const GantryGpu* gpu = opaque;

  if (gpu->wedged) {
    return UINT64_MAX;
  }
  switch (at) {
    case GANTRY_GPU_BOOT_ID: return gpu->boot_id;
    case GANTRY_GPU_BOOT_ID_42: return boot_id_42(gpu->boot_id);
    case GANTRY_GPU_SCRATCH: return gpu->scratch;
    case GANTRY_GPU_RESETS: return gpu->resets;
    case GANTRY_GPU_MAGIC: return GANTRY_GPU_MAGIC_VALUE;
    case GANTRY_GPU_DMA_ADDRESS: return extract64(gpu->dma_address, 0, size == 8 ? 64 : 32);
    case GANTRY_GPU_DMA_ADDRESS + 4: return gpu->dma_address >> 32;
    case GANTRY_GPU_DMA_LENGTH: return gpu->dma_length;
    case GANTRY_GPU_DMA_STATUS: return gpu->dma_status;
    default: return in_buffer(at, size) ? ldn_le_p(gpu->buffer + at - GANTRY_GPU_BUFFER, size) : 0;
  }
}

/* Copies between the buffer and memory, as the device sees memory: through the IOMMU, if the
 * machine has one. */
static void start_dma(GantryGpu* gpu, uint64_t command) {
  MemTxResult result = MEMTX_ERROR;

  if (command == GANTRY_GPU_DMA_FROM_MEMORY) {
    result = pci_dma_read(&gpu->pci, gpu->dma_address, gpu->buffer, gpu->dma_length);
  } else if (command == GANTRY_GPU_DMA_TO_MEMORY) {
    result = pci_dma_write(&gpu->pci, gpu->dma_address, gpu->buffer, gpu->dma_length);
  }
  gpu->dma_status = result == MEMTX_OK ? 0 : 1;
}

static void registers_write(void* opaque, hwaddr at, uint64_t value, unsigned size) {
  GantryGpu* gpu = opaque;

  if (gpu->wedged) {
    return;
  }
  switch (at) {
    case GANTRY_GPU_SCRATCH: gpu->scratch = value; break;
    case GANTRY_GPU_DMA_ADDRESS:
      gpu->dma_address = size == 8 ? value : deposit64(gpu->dma_address, 0, 32, value);
      break;
    case GANTRY_GPU_DMA_ADDRESS + 4:
      gpu->dma_address = deposit64(gpu->dma_address, 32, 32, value);
      break;
    case GANTRY_GPU_DMA_LENGTH: gpu->dma_length = MIN(value, sizeof(gpu->buffer)); break;
    case GANTRY_GPU_DMA_COMMAND: start_dma(gpu, value); break;
    case GANTRY_GPU_RAISE_MSI:
      if (msi_enabled(&gpu->pci)) {
        msi_notify(&gpu->pci, 0);
      }
      break;
    case GANTRY_GPU_WEDGE: gpu->wedged = value != 0; break;
    default:
      if (in_buffer(at, size)) {
        stn_le_p(gpu->buffer + at - GANTRY_GPU_BUFFER, size, value);
      }
  }
}

static const MemoryRegionOps register_ops = {
    .read = registers_read,
    .write = registers_write,
    .endianness = DEVICE_LITTLE_ENDIAN,
    .valid = {.min_access_size = 1, .max_access_size = 8},
    .impl = {.min_access_size = 1, .max_access_size = 8},
};

/* A VF has what its PF says; nothing of it comes from the command line. */
static void take_from_pf(GantryGpu* vf, const GantryGpu* pf) {
  vf->vendor_id = pf->vendor_id;
  vf->device_id = pf->vf_device_id;
  vf->class_id = pf->class_id;
  vf->revision = pf->revision;
  vf->subsystem_vendor_id = pf->subsystem_vendor_id;
  vf->subsystem_id = pf->subsystem_id;
  vf->boot_id = pf->boot_id;
  vf->serial_number = 0;
  memset(vf->bar_size, 0, sizeof(vf->bar_size));
  vf->bar_size[0] = pf->vf_bar0_size;
  vf->bar_size[1] = pf->vf_bar1_size;
  vf->wide_bars = 1 << 1;
  vf->flr = true;
  vf->vfs = 0;
}

static uint8_t bar_type(const GantryGpu* gpu, int bar) {
  const bool wide = gpu->wide_bars >> bar & 1;
  return wide ? PCI_BASE_ADDRESS_MEM_TYPE_64 | PCI_BASE_ADDRESS_MEM_PREFETCH
              : PCI_BASE_ADDRESS_SPACE_MEMORY;
}

/* BAR 0 has the registers; the others are plain memory. */
static bool add_bar(GantryGpu* gpu, int bar, Error** errp) {
  MemoryRegion* memory = &gpu->memory[bar];
  g_autofree char* name = g_strdup_printf("gantry-gpu-bar%d", bar);

  if (!is_power_of_2(gpu->bar_size[bar])) {
    error_setg(errp, "bar%d=%" PRIu64 " is not a power of two", bar, gpu->bar_size[bar]);
    return false;
  }
  if (bar == 0) {
    memory_region_init_io(memory, OBJECT(gpu), &register_ops, gpu, name, gpu->bar_size[0]);
  } else {
    ERRP_GUARD();
    memory_region_init_ram_nomigrate(memory, OBJECT(gpu), name, gpu->bar_size[bar], errp);
    if (*errp) {
      return false;
    }
  }
  if (pci_is_vf(&gpu->pci)) {
    pcie_sriov_vf_register_bar(&gpu->pci, bar, memory);
  } else {
    pci_register_bar(&gpu->pci, bar, bar_type(gpu, bar), memory);
  }
  return true;
}

static void set_ids(GantryGpu* gpu) {
  uint8_t* config = gpu->pci.config;

  pci_config_set_vendor_id(config, gpu->vendor_id);
  pci_config_set_device_id(config, gpu->device_id);
  pci_config_set_class(config, gpu->class_id);
  pci_config_set_prog_interface(config, gpu->programming_interface);
  pci_config_set_revision(config, gpu->revision);
  pci_set_word(config + PCI_SUBSYSTEM_VENDOR_ID, gpu->subsystem_vendor_id);
  pci_set_word(config + PCI_SUBSYSTEM_ID, gpu->subsystem_id);
  if (!pci_is_vf(&gpu->pci)) {
    pci_config_set_interrupt_pin(config, 1);
  }
}

static bool on_express_bus(GantryGpu* gpu) {
  return pci_bus_is_express(pci_get_bus(&gpu->pci));
}

static void add_sriov(GantryGpu* gpu) {
  PCIDevice* pci = &gpu->pci;

  pcie_ari_init(pci, ARI_OFFSET, 1);
  pcie_sriov_pf_init(pci, SRIOV_OFFSET, TYPE_GANTRY_GPU_VF, gpu->vf_device_id, gpu->vfs, gpu->vfs,
                     gpu->vf_offset, gpu->vf_stride);
  pcie_sriov_pf_init_vf_bar(pci, 0, PCI_BASE_ADDRESS_SPACE_MEMORY, gpu->vf_bar0_size);
  pcie_sriov_pf_init_vf_bar(pci, 1, PCI_BASE_ADDRESS_MEM_TYPE_64 | PCI_BASE_ADDRESS_MEM_PREFETCH,
                            gpu->vf_bar1_size);
}

static bool add_capabilities(GantryGpu* gpu, Error** errp) {
  PCIDevice* pci = &gpu->pci;

  if (pci_add_capability(pci, PCI_CAP_ID_PM, PM_OFFSET, PCI_PM_SIZEOF, errp) < 0) {
    return false;
  }
  pci_set_word(pci->config + PM_OFFSET + PCI_PM_PMC, 3); /* version 1.2 */
  /* Leaving D3 does not reset it, so that the kernel offers no reset that has no effect. */
  pci_set_word(pci->config + PM_OFFSET + PCI_PM_CTRL, PCI_PM_CTRL_NO_SOFT_RESET);
  pci_set_word(pci->wmask + PM_OFFSET + PCI_PM_CTRL, PCI_PM_CTRL_STATE_MASK);
  if (msi_init(pci, MSI_OFFSET, 1, true, false, errp) != 0) {
    return false;
  }
  if (!on_express_bus(gpu)) {
    return true;
  }
  if (pcie_endpoint_cap_init(pci, EXPRESS_OFFSET) < 0) {
    error_setg(errp, "no room for the PCI Express capability");
    return false;
  }
  if (gpu->flr) {
    pcie_cap_flr_init(pci);
  }
  if (pcie_aer_init(pci, PCI_ERR_VER, AER_OFFSET, PCI_ERR_SIZEOF, errp) < 0) {
    return false;
  }
  if (gpu->serial_number != 0) {
    pcie_dev_ser_num_init(pci, SERIAL_OFFSET, gpu->serial_number);
  }
  if (gpu->vfs != 0) {
    add_sriov(gpu);
  } else if (pci_is_vf(pci)) {
    pcie_ari_init(pci, ARI_OFFSET, 1);
  }
  return true;
}

static void gpu_realize(PCIDevice* pci, Error** errp) {
  GantryGpu* gpu = GANTRY_GPU(pci);

  if (pci_is_vf(pci)) {
    take_from_pf(gpu, GANTRY_GPU(pcie_sriov_get_pf(pci)));
  }
  set_ids(gpu);
  for (int bar = 0; bar < BAR_COUNT; bar++) {
    if (gpu->bar_size[bar] != 0 && !add_bar(gpu, bar, errp)) {
      return;
    }
  }
  add_capabilities(gpu, errp);
}

static void gpu_exit(PCIDevice* pci) {
  GantryGpu* gpu = GANTRY_GPU(pci);

  if (gpu->vfs != 0) {
    pcie_sriov_pf_exit(pci);
  }
  if (on_express_bus(gpu)) {
    pcie_aer_exit(pci);
    pcie_cap_exit(pci);
  }
  msi_uninit(pci);
}

static void gpu_reset(DeviceState* state) {
  GantryGpu* gpu = GANTRY_GPU(state);

  gpu->resets++;
  gpu->scratch = gpu->dma_length = gpu->dma_status = 0;
  gpu->dma_address = 0;
  gpu->wedged = false;
  memset(gpu->buffer, 0, sizeof(gpu->buffer));
  if (gpu->vfs != 0) {
    pcie_sriov_pf_disable_vfs(&gpu->pci);
  }
}

static void gpu_config_write(PCIDevice* pci, uint32_t at, uint32_t value, int size) {
  GantryGpu* gpu = GANTRY_GPU(pci);

  pci_default_write_config(pci, at, value, size);
  if (pci->exp.aer_cap != 0) {
    pcie_aer_write_config(pci, at, value, size);
  }
  if (gpu->flr && on_express_bus(gpu)) {
    pcie_cap_flr_write_config(pci, at, value, size);
  }
}

static Property gpu_properties[] = {
    DEFINE_PROP_UINT16("vendor-id", GantryGpu, vendor_id, 0x10de),
    DEFINE_PROP_UINT16("device-id", GantryGpu, device_id, 0x2335),
    DEFINE_PROP_UINT16("class-id", GantryGpu, class_id, 0x0302),
    DEFINE_PROP_UINT8("prog-if", GantryGpu, programming_interface, 0),
    DEFINE_PROP_UINT8("revision", GantryGpu, revision, 0xa1),
    DEFINE_PROP_UINT16("sub-vendor-id", GantryGpu, subsystem_vendor_id, 0x10de),
    DEFINE_PROP_UINT16("sub-device-id", GantryGpu, subsystem_id, 0),
    DEFINE_PROP_UINT32("boot-id", GantryGpu, boot_id, 0x180000a1),
    DEFINE_PROP_UINT64("serial-number", GantryGpu, serial_number, 0),
    DEFINE_PROP_SIZE("bar0", GantryGpu, bar_size[0], 16 * MiB),
    DEFINE_PROP_SIZE("bar1", GantryGpu, bar_size[1], 0),
    DEFINE_PROP_SIZE("bar2", GantryGpu, bar_size[2], 0),
    DEFINE_PROP_SIZE("bar3", GantryGpu, bar_size[3], 0),
    DEFINE_PROP_SIZE("bar4", GantryGpu, bar_size[4], 0),
    DEFINE_PROP_SIZE("bar5", GantryGpu, bar_size[5], 0),
    DEFINE_PROP_UINT8("wide-bars", GantryGpu, wide_bars, 0),
    DEFINE_PROP_BOOL("flr", GantryGpu, flr, true),
    DEFINE_PROP_UINT16("vfs", GantryGpu, vfs, 0),
    DEFINE_PROP_UINT16("vf-device-id", GantryGpu, vf_device_id, 0x2335),
    DEFINE_PROP_UINT16("vf-offset", GantryGpu, vf_offset, 4),
    DEFINE_PROP_UINT16("vf-stride", GantryGpu, vf_stride, 1),
    DEFINE_PROP_SIZE("vf-bar0", GantryGpu, vf_bar0_size, 64 * KiB),
    DEFINE_PROP_SIZE("vf-bar1", GantryGpu, vf_bar1_size, 1 * MiB),
    DEFINE_PROP_END_OF_LIST(),
};

/* QEMU has no stable ABI for devices. Headers of another version give structs of another size, and
 * a device that writes into its neighbour. */
static void refuse_another_qemu(void) {
  const size_t here = sizeof(PCIDevice), there = object_type_get_instance_size(TYPE_PCI_DEVICE);

  if (here != there) {
    fprintf(stderr,
            "gantry-gpu: this QEMU is not the one whose headers gantry-gpu.so was built with "
            "(PCIDevice has %zu bytes in "
            "the headers, %zu in QEMU). Run: tools/vm-prepare\n",
            here, there);
    exit(1);
  }
}

static void gpu_class_init(ObjectClass* object_class, void* data) {
  DeviceClass* device = DEVICE_CLASS(object_class);
  PCIDeviceClass* pci = PCI_DEVICE_CLASS(object_class);

  refuse_another_qemu();
  pci->realize = gpu_realize;
  pci->exit = gpu_exit;
  pci->config_write = gpu_config_write;
  pci->vendor_id = 0x10de;
  pci->device_id = 0x2335;
  pci->class_id = 0x0302;
  device->reset = gpu_reset;
  device->desc = "A PCI function that looks like a GPU";
  set_bit(DEVICE_CATEGORY_MISC, device->categories);
  device_class_set_props(device, gpu_properties);
}

static const TypeInfo gpu_types[] = {
    {
        .name = TYPE_GANTRY_GPU,
        .parent = TYPE_PCI_DEVICE,
        .instance_size = sizeof(GantryGpu),
        .class_init = gpu_class_init,
        .interfaces = (InterfaceInfo[]){{INTERFACE_PCIE_DEVICE}, {}},
    },
    {.name = TYPE_GANTRY_GPU_VF, .parent = TYPE_GANTRY_GPU},
};

static void register_gpu_types(void) {
  for (size_t i = 0; i < ARRAY_SIZE(gpu_types); i++) {
    type_register_static(&gpu_types[i]);
  }
}

type_init(register_gpu_types)
