// SPDX-License-Identifier: Apache-2.0
// The libraries, programs and firmware of a package.
#include "sim/machine/driver_library.hpp"
#include "sim/machine/elf_writer.hpp"
#include "sim/machine/image.hpp"
#include "sim/package/package_parts_internal.hpp"

#include <fmt/format.h>

#include <array>
#include <optional>

namespace gantry::sim {
namespace {

// How the manifest describes a library and its links.
struct LibraryKind {
  std::string_view library;  // the name before ".so"; "" for all others
  std::string_view type, link_type;
  std::string_view folder;  // "/" none, "" the type has no such word
  std::string_view tag;
  bool dev_link = false;  // has a link libX.so, too
};

constexpr std::array kLibraryKinds{
    LibraryKind{"libcuda", "CUDA_LIB", "CUDA_SYMLINK", "/", "gpgpu", true},
    LibraryKind{"libnvidia-ml", "CUDA_LIB", "CUDA_SYMLINK", "/", "nvml", true},
    LibraryKind{"libcudadebugger", "CUDA_LIB", "CUDA_SYMLINK", "/", "gpgpudbg", false},
    LibraryKind{"libnvidia-compiler", "CUDA_LIB", "CUDA_SYMLINK", "/", "gpgpucomp", false},
    LibraryKind{"libnvidia-fatbinaryloader", "CUDA_LIB", "CUDA_SYMLINK", "/", "gpgpu", false},
    LibraryKind{"libnvidia-nvvm", "CUDA_LIB", "CUDA_SYMLINK", "/", "compiler", true},
    LibraryKind{"libnvidia-ptxjitcompiler", "CUDA_LIB", "CUDA_SYMLINK", "/", "gpgpucomp", true},
    LibraryKind{"libnvidia-opencl", "OPENCL_LIB", "OPENCL_LIB_SYMLINK", "/", "gpgpu", false},
    LibraryKind{"libnvidia-tls", "TLS_LIB", "", "/", "opengl", false},
    LibraryKind{"libvdpau_nvidia", "VDPAU_LIB", "VDPAU_SYMLINK", "vdpau/", "vdpau", false},
    LibraryKind{"libnvcuvid", "NVCUVID_LIB", "NVCUVID_LIB_SYMLINK", "", "nvcuvid", true},
    LibraryKind{"libnvidia-opticalflow", "NVCUVID_LIB", "NVCUVID_LIB_SYMLINK", "", "opticalflow",
                true},
    LibraryKind{"libnvidia-encode", "ENCODEAPI_LIB", "ENCODEAPI_LIB_SYMLINK", "", "encodeapi",
                true},
    LibraryKind{"libnvidia-ifr", "NVIFR_LIB", "NVIFR_LIB_SYMLINK", "", "nvifr", true},
    LibraryKind{"libnvidia-fbc", "UTILITY_LIB", "UTILITY_LIB_SYMLINK", "", "nvfbc", true},
    LibraryKind{"libnvidia-cfg", "UTILITY_LIB", "UTILITY_LIB_SYMLINK", "", "xutils", true},
    LibraryKind{"libnvidia-allocator", "UTILITY_LIB", "UTILITY_LIB_SYMLINK", "", "nvalloc", true},
    LibraryKind{"libnvidia-gpucomp", "UTILITY_LIB", "", "/", "nvgpucomp", false},
    LibraryKind{"libnvidia-pkcs11", "UTILITY_LIB", "", "", "nvlibpkcs11", false},
    LibraryKind{"libnvidia-pkcs11-openssl3", "UTILITY_LIB", "", "", "nvlibpkcs11", false},
    LibraryKind{"", "OPENGL_LIB", "OPENGL_SYMLINK", "", "opengl", false},
};

// Libraries for 32-bit programs that a package has.
constexpr std::array<std::string_view, 3> kCompat32 = {"libcuda.so.1", "libnvidia-ml.so.1",
                                                       "libnvidia-ptxjitcompiler.so.1"};

const LibraryKind& kind_of_library(std::string_view dev_link) {
  for (const auto& kind : kLibraryKinds)
    if (kind.library == dev_link.substr(0, dev_link.find(".so"))) return kind;
  return kLibraryKinds.back();
}

void add_library(PackageContent& out, const DriverLibrary& library, std::string content,
                 ElfClass bits) {
  const auto& kind = kind_of_library(library.dev_link);
  const auto words = fmt::format("{}{}{}", bits == ElfClass::Bits64 ? "NATIVE" : "COMPAT32",
                                 kind.folder.empty() ? "" : " ", kind.folder);
  out.add(fmt::format("{}{}", bits == ElfClass::Bits64 ? "" : "./32/", library.file),
          std::move(content), 0755, fmt::format("{} {} MODULE:{}", kind.type, words, kind.tag));
  const auto link = [&](std::string_view name, std::string_view target) {
    out.add_link(name, fmt::format("{} {} {} MODULE:{}", kind.link_type, words, target, kind.tag));
  };
  if (library.soname != library.file) link(library.soname, library.file);
  if (kind.dev_link) link(library.dev_link, library.soname);
}

bool has(const Machine& m, std::string_view library) {
  for (const auto& spec : m.driver.libraries)
    if (spec.starts_with(library)) return true;
  return false;
}

// Files by which other software finds the libraries.
void add_vendor_files(PackageContent& out, const Machine& cards) {
  if (has(cards, "libnvidia-opencl"))
    out.add("nvidia.icd", "libnvidia-opencl.so.1\n", 0444, "CUDA_ICD MODULE:gpgpu");
  if (has(cards, "libEGL_nvidia")) {
    out.add("10_nvidia.json",
            "{\n  \"file_format_version\": \"1.0.0\",\n  \"ICD\": {\"library_path\": "
            "\"libEGL_nvidia.so.0\"}\n}\n",
            0644, "GLVND_EGL_ICD_JSON MODULE:opengl");
  }
  if (has(cards, "libGLX_nvidia")) {
    out.add("nvidia_icd.json",
            "{\n  \"file_format_version\": \"1.0.0\",\n  \"ICD\": {\"library_path\": "
            "\"libGLX_nvidia.so.0\", \"api_version\": \"1.3.0\"}\n}\n",
            0644, "VULKAN_ICD_JSON icd.d/ MODULE:opengl");
  }
}

// One chip in a line, as our nvidia-installer reads it.
std::string supported_gpus(const Machine& cards) {
  std::string chips;
  for (const auto& gpu : cards.gpus) {
    const auto& name = gpu.architecture;
    const bool open = name == "Turing" || name == "Ampere" || name == "Hopper" || name == "Ada" ||
                      name == "Ada Lovelace" || name == "Blackwell";
    const bool legacy = name == "Kepler";
    chips +=
        fmt::format("{}  {{\"devid\":\"0x{:04X}\",\"name\":\"{}\",{}\"features\":[{}]}}",
                    chips.empty() ? "" : ",\n", gpu.pci.device, gpu.name,
                    legacy ? "\"legacybranch\":\"470.xx\"," : "", open ? "\"kernelopen\"" : "");
  }
  return fmt::format("{{\"chips\":[\n{}\n]}}\n", chips);
}

}  // namespace

Status add_libraries(PackageContent& out, const PackageParts& parts) {
  GANTRY_TRY(const Image image, make_image(parts.cards));
  const auto& version = parts.driver.version;
  for (const auto& spec : parts.cards.driver.libraries) {
    const auto library = driver_library(spec, "", version);
    add_library(out, library,
                driver_library_content(library.file, library.soname, parts.driver.branch, *image,
                                       parts.files),
                ElfClass::Bits64);
  }
  for (const auto& spec : kCompat32) {
    const auto library = driver_library(spec, "", version);
    add_library(out, library, shared_object(library.soname, ElfClass::Bits32), ElfClass::Bits32);
  }
  add_vendor_files(out, parts.cards);
  return {};
}

Status add_programs(PackageContent& out, const PackageParts& parts) {
  const auto add = [&](const char* name, std::string content, const char* tag) {
    out.add(name, std::move(content), 0755, fmt::format("UTILITY_BINARY MODULE:{}", tag));
  };
  for (const auto& [name, content] : parts.files.programs)
    add(name.c_str(), content, name == "nvidia-smi" ? "nvml" : "gpgpu");
  add("nvidia-debugdump", static_program("nvidia-debugdump: simulated"), "nvml");
  GANTRY_TRY(auto persistenced, parts.tree.package_file("nvidia-persistenced", parts.driver));
  add("nvidia-persistenced", std::move(persistenced), "nvpd");
  GANTRY_TRY(auto report, parts.tree.package_file("nvidia-bug-report.sh", parts.driver));
  add("nvidia-bug-report.sh", std::move(report), "installer");
  GANTRY_TRY(auto modprobe, parts.tree.package_file("nvidia-modprobe", parts.driver));
  out.add("nvidia-modprobe", std::move(modprobe), 04755,
          "NVIDIA_MODPROBE /usr/bin/ MODULE:installer");
  return {};
}

Status add_installer(PackageContent& out, const PackageParts& parts) {
  std::string installer;
  for (const auto* part :
       {"1-messages.sh", "2-options.sh", "3-files.sh", "4-modules.sh", "5-actions.sh"}) {
    GANTRY_TRY(const auto text,
               parts.tree.package_file(fmt::format("installer/{}", part), parts.driver));
    installer += text;
  }
  out.add("nvidia-installer", installer, 0755, "INSTALLER_BINARY MODULE:installer");
  out.add_link("nvidia-uninstall", "UTILITY_BIN_SYMLINK nvidia-installer MODULE:installer");
  for (const auto* name : {"LICENSE", "README.txt"}) {
    GANTRY_TRY(auto text, parts.tree.package_file(name, parts.driver));
    out.add(name, std::move(text), 0444, "DOCUMENTATION NVIDIA_GLX-1.0/ MODULE:installer");
  }
  out.add("supported-gpus/supported-gpus.json", supported_gpus(parts.cards), 0444,
          "DOCUMENTATION NVIDIA_GLX-1.0/supported-gpus/ MODULE:installer");
  return {};
}

void add_firmware(PackageContent& out, const PackageParts& parts) {
  for (const auto& name : parts.cards.driver.firmware) {
    out.add(fmt::format("firmware/{}", name),
            fmt::format("simulated firmware {} {}\n", name, parts.driver.version), 0444,
            "FIRMWARE INHERIT_PATH_DEPTH:1 MODULE:gsp");
  }
}

}  // namespace gantry::sim
