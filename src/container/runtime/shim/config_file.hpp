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
  // `path` may be a symlink: its target is read and later replaced. It must be a regular file.
  static Result<ConfigFile> read(const std::string& path);

  const std::string& path() const { return path_; }
  const json::Document& document() const { return document_; }

  // Writes a temporary file with the same mode, owner and SELinux label and renames it, so that
  // either the complete old file or the complete new one exists. Does nothing if the text is equal.
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
