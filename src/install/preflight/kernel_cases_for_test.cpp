// SPDX-License-Identifier: Apache-2.0
#include "install/driver_package/checksum.hpp"
#include "install/kernel_module/module_image_for_test.hpp"
#include "install/preflight/host_for_test.hpp"

#include <fmt/format.h>

namespace gantry::preflight {
namespace {

using enum Severity;

constexpr const char* kClangKernel =
    "CONFIG_CC_IS_CLANG=y\nCONFIG_GCC_VERSION=0\nCONFIG_CLANG_VERSION=170006\n"
    "CONFIG_LD_IS_LLD=y\n";

std::string headers() {
  return fmt::format("/usr/src/linux-headers-{}", kTestKernel);
}

void precompiled(TestHost& host, std::string_view module) {
  host.request.source = Source::Precompiled;
  host.request.modules = "/root/ko";
  host.sources.modules = "/root/ko";
  host.file(fmt::format("/root/ko/{}/nvidia.ko", kTestKernel), module);
  driver_package::Sha256 sum;
  sum.add(module);
  host.file("/root/ko/SHA256SUMS", fmt::format("{}  {}/nvidia.ko\n", sum.finish(), kTestKernel));
}

}  // namespace

std::vector<FindingCase> kernel_cases() {
  return {
      {"kernel-unknown", Blocks, "cannot be read",
       [](TestHost& host) { host.remove("/proc/version").remove("/proc/sys/kernel/osrelease"); }},
      {"headers-missing", Blocks, "sudo apt-get install linux-headers-6.1.0-21-amd64",
       [](TestHost& host) {
         host.remove(fmt::format("/lib/modules/{}/build", kTestKernel)).remove(headers());
       }},
      {"headers-mismatch", Blocks, "is for kernel 6.1.0-18-amd64, not for 6.1.0-21-amd64",
       [](TestHost& host) {
         host.file(headers() + "/include/generated/utsrelease.h",
                   "#define UTS_RELEASE \"6.1.0-18-amd64\"\n");
       }},
      {"compiler-missing", Blocks, "kernel 6.1.0-21-amd64 was built by gcc 12",
       [](TestHost& host) {
         host.remove("/usr/bin/gcc").remove("/usr/bin/gcc-12").remove("/usr/lib/gcc");
       }},
      {"compiler-mismatch", Blocks, "was built by gcc 12, and this machine has gcc 11",
       [](TestHost& host) {
         host.remove("/usr/bin/gcc-12").remove("/usr/lib/gcc");
         host.file("/usr/bin/gcc-11", "").link("/usr/bin/gcc", "gcc-11");
         host.file("/usr/lib/gcc/x86_64-linux-gnu/11/cc1", "");
       }},
      {"compiler-chosen", Notes, "will be compiled by gcc-12",
       [](TestHost& host) {
         host.file("/usr/bin/gcc-13", "").link("/usr/bin/gcc", "gcc-13");
         host.file("/usr/lib/gcc/x86_64-linux-gnu/13/cc1", "");
       }},
      {"compiler-missing", Blocks, "sudo apt-get install clang-17 lld-17 llvm-17",
       [](TestHost& host) { host.file(headers() + "/include/config/auto.conf", kClangKernel); }},
      {"compiler-missing", Blocks, "ld.lld, and this linker is not installed",
       [](TestHost& host) {
         host.file(headers() + "/include/config/auto.conf", kClangKernel);
         host.file("/usr/bin/clang-17", "");
       }},
      {"make-missing", Blocks, "sudo apt-get install make",
       [](TestHost& host) { host.remove("/usr/bin/make"); }},
      {"linker-missing", Blocks, "sudo apt-get install binutils",
       [](TestHost& host) { host.remove("/usr/bin/ld"); }},
      {"kernel-newer-than-driver", Warns, "--patch FILE",
       [](TestHost& host) {
         host.request.version = "460.56";
         host.request.run_file = "/root/NVIDIA-Linux-x86_64-460.56.run";
       }},
      {"modules-disabled", Blocks, "kernel.modules_disabled",
       [](TestHost& host) { host.file("/proc/sys/kernel/modules_disabled", "1\n"); }},
      {"unsigned-module-refused", Blocks, "Key was rejected by service",
       [](TestHost& host) { host.file("/sys/module/module/parameters/sig_enforce", "Y\n"); }},
      {"modules-will-be-signed", Notes, "signed with the given key",
       [](TestHost& host) {
         host.file("/sys/module/module/parameters/sig_enforce", "Y\n");
         host.request.sign_key = "pkcs11:token=hsm";
         host.request.sign_certificate = "/root/mok.der";
       }},
      {"unsigned-module-refused", Blocks, "Required key not available",
       [](TestHost& host) {
         precompiled(host, kernel_module::nvidia_module("nvidia", kTestKernel, "580.159.04"));
         host.file("/sys/module/module/parameters/sig_enforce", "Y\n");
       }},
      {"precompiled-missing", Blocks, "there is no nvidia.ko for kernel 6.1.0-21-amd64 in /root/ko",
       [](TestHost& host) {
         precompiled(host, "");
         host.remove("/root/ko/6.1.0-21-amd64");
       }},
      {"precompiled-damaged", Blocks, "nvidia.ko",
       [](TestHost& host) {
         precompiled(host,
                     "\x7f"
                     "ELF");
       }},
      {"precompiled-without-digest", Blocks, "--trust-modules-without-digest",
       [](TestHost& host) {
         precompiled(host, kernel_module::nvidia_module("nvidia", kTestKernel, "580.159.04"));
         host.remove("/root/ko/SHA256SUMS");
       }},
      {"precompiled-other-digest", Blocks, "copy it again from where it was built",
       [](TestHost& host) {
         precompiled(host, kernel_module::nvidia_module("nvidia", kTestKernel, "580.159.04"));
         host.file(
             fmt::format("/root/ko/{}/nvidia.ko", kTestKernel),
             kernel_module::nvidia_module("nvidia", kTestKernel, "580.159.04", "Dual MIT/GPL"));
       }},
      {"precompiled-other-kernel", Blocks, "was built for kernel 5.10.0, not for 6.1.0-21-amd64",
       [](TestHost& host) {
         precompiled(host, kernel_module::nvidia_module("nvidia", "5.10.0", "580.159.04"));
       }},
      {"precompiled-other-driver", Blocks, "is of driver 535.183.01, not of 580.159.04",
       [](TestHost& host) {
         precompiled(host, kernel_module::nvidia_module("nvidia", kTestKernel, "535.183.01"));
       }},
      {"flavour-unsupported", Blocks, "Maxwell GPUs work only with the proprietary",
       [](TestHost& host) {
         host = TestHost("", {"k620"});
         precompiled(host, kernel_module::nvidia_module("nvidia", kTestKernel, "580.159.04",
                                                        "Dual MIT/GPL"));
       }},
      {"modprobe-forbids-nvidia", Warns, "/etc/modprobe.d/vfio.conf",
       [](TestHost& host) { host.file("/etc/modprobe.d/vfio.conf", "blacklist nvidia\n"); }},
      {"newer-kernel-installed", Notes, "6.1.0-22-amd64",
       [](TestHost& host) { host.file("/lib/modules/6.1.0-22-amd64/modules.dep", ""); }},
  };
}

}  // namespace gantry::preflight
