// SPDX-License-Identifier: Apache-2.0
// A throw-away directory tree, written as a literal: tree.file("dev.table", "...").link("a", "b").
#pragma once

#include "base/sys/host.hpp"

#include <string>
#include <string_view>

namespace gantry::test {

// Where trees are made: in memory where programs may be run from there, because a machine has some
// thousand small files.
std::string temp_directory();

class Tree {
 public:
  Tree();
  ~Tree();
  Tree(const Tree&) = delete;
  Tree& operator=(const Tree&) = delete;

  Tree& file(std::string_view path, std::string_view content = "");
  Tree& directory(std::string_view path);
  Tree& link(std::string_view path, std::string_view target);
  Tree& remove(std::string_view path);

  std::string path(std::string_view inside) const;
  const std::string& root() const { return root_; }
  sys::Host host() const;

 private:
  std::string root_;
};

}  // namespace gantry::test
