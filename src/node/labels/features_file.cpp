// SPDX-License-Identifier: Apache-2.0
#include "node/labels/features_file.hpp"

#include "base/sys/replace_file.hpp"

#include <unistd.h>

#include <cerrno>

namespace gantry::labels {

Status write_features_file(const std::string& path, const Labels& labels) {
  return sys::replace_file(path, to_lines(labels), 0644, sys::Durability::Volatile)
      .in("writing the node's labels");
}

Status remove_features_file(const std::string& path) {
  if (::unlink(path.c_str()) == 0 || errno == ENOENT) return {};
  return Error::sys(errno, "unlink").in("removing the node's labels").in(path);
}

}  // namespace gantry::labels
