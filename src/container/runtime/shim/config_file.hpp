// SPDX-License-Identifier: Apache-2.0
// A bundle's config.json: read once, replaced in one step.
#pragma once

#include "base/core/result.hpp"
#include "base/json/document.hpp"

#include <sys/types.h>

#include <string>

namespace gantry::runtime {

class ConfigFile {
 public:
  // `path` may be a symlink; what it leads to is read and later replaced. Only a regular file is.
  static Result<ConfigFile> read(const std::string& path);

  const std::string& path() const { return path_; }
  const json::Document& document() const { return document_; }

  // Written beside it and renamed over it, with the mode, owner and SELinux label that it had. At
  // every moment the old file or the new one is there, whole. Nothing happens when it is the same.
  Status replace(const std::string& text) const;

 private:
  ConfigFile(std::string path, json::Document document)
      : path_(std::move(path)), document_(std::move(document)) {}
  Status fill(int fd, const std::string& text) const;

  std::string path_;
  json::Document document_;
  mode_t mode_ = 0;
  uid_t uid_ = 0;
  gid_t gid_ = 0;
  std::string label_;
};

}  // namespace gantry::runtime
