// SPDX-License-Identifier: Apache-2.0
// One of the vendor's libraries, opened by its absolute path and closed by its owner.
#pragma once

#include "base/core/result.hpp"

#include <memory>
#include <string>
#include <string_view>

namespace gantry::driver {

class Library {
 public:
  Library() = default;  // none: a table filled by hand in a test

  // Invalid when the path is not absolute (the loader's search would decide, not we), NotFound when
  // there is no such file, Unsupported when the loader refuses it; the text says why.
  static Result<Library> open(const std::string& path);

  void* symbol(const char* name) const;  // nullptr when it has none of that name
  const std::string& path() const { return path_; }

 private:
  struct Close {
    void operator()(void* handle) const;
  };
  std::unique_ptr<void, Close> handle_;
  std::string path_;
};

// "missing" in the error of a library without a function that every version of it has.
Error missing_symbol(const Library& library, std::string_view symbol);

}  // namespace gantry::driver
