// SPDX-License-Identifier: Apache-2.0
#include "gpu/nvml/library.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <fmt/format.h>

#include <cerrno>

namespace gantry::nvml {

void Library::Close::operator()(void* handle) const {
  ::dlclose(handle);
}

Result<Library> Library::open(const std::string& path) {
  if (!path.starts_with('/')) {
    return Error(Errc::Invalid, fmt::format("loading {}: not an absolute path", path));
  }
  if (::access(path.c_str(), R_OK) != 0) return Error::sys(errno, fmt::format("loading {}", path));
  Library library;
  library.handle_.reset(::dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL));
  if (!library.handle_) {
    const char* why = ::dlerror();
    return Error(
        Errc::Unsupported,
        fmt::format("loading {}: {}", path, why != nullptr ? why : "the loader gave no reason"));
  }
  library.path_ = path;
  return library;
}

void* Library::symbol(const char* name) const {
  return handle_ ? ::dlsym(handle_.get(), name) : nullptr;
}

Error missing_symbol(const Library& library, std::string_view symbol) {
  return {Errc::Unsupported, fmt::format("{} has no function {}: it is not the driver's library, "
                                         "or it is damaged; reinstall the driver",
                                         library.path(), symbol)};
}

}  // namespace gantry::nvml
