// SPDX-License-Identifier: Apache-2.0
// nvidia-container-cli --debug FILE: appends one line to the file for everything that was examined
// and found.
#pragma once

#include "base/core/result.hpp"
#include "gpu/model/inventory.hpp"

#include <cstdio>
#include <memory>
#include <string_view>

namespace gantry::cli {

class ContainerCliLog {
 public:
  ContainerCliLog() = default;  // a log that discards everything
  // Opens the file for appending and fails if that is impossible. "" means no file.
  static Result<ContainerCliLog> open(const std::string& path);

  // Writes "I1115 07:40:02.123456 4711 gantry] text", the format of the original's logs.
  void info(std::string_view text) const { line('I', text); }
  void error(std::string_view text) const { line('E', text); }
  void machine(const model::Inventory& machine) const;

 private:
  void line(char severity, std::string_view text) const;

  struct Close {
    void operator()(std::FILE* file) const { (void)std::fclose(file); }
  };
  std::unique_ptr<std::FILE, Close> file_;
};

}  // namespace gantry::cli
