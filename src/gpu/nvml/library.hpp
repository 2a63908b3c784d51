// SPDX-License-Identifier: Apache-2.0
// A library of the vendor, opened by its absolute path. The destructor closes it.
#pragma once

#include "base/core/result.hpp"

#include <memory>
#include <string>
#include <string_view>

namespace gantry::nvml {

class Library {
 public:
  Library() = default;  // no library: for a table that a test fills

  // Invalid if the path is not absolute (the loader would search for it), NotFound if the file does
  // not exist, Unsupported if the loader refuses it; the text says why.
  static Result<Library> open(const std::string& path);

  void* symbol(const char* name) const;  // nullptr if it has no such symbol
  const std::string& path() const { return path_; }

 private:
  struct Close {
    void operator()(void* handle) const;
  };
  std::unique_ptr<void, Close> handle_;
  std::string path_;
};

// Sets the pointer to the library's function of that name, or to null if it has none.
template <class Function>
void find_function(const Library& library, const char* name, Function*& pointer) {
  pointer = reinterpret_cast<Function*>(library.symbol(name));
}

// The error for a library that lacks a function that every version of it has.
Error missing_symbol(const Library& library, std::string_view symbol);

}  // namespace gantry::nvml
