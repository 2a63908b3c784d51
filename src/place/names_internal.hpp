// SPDX-License-Identifier: Apache-2.0
// Node names to numbers. A filter looks up every node of the cluster, and waiting for memory is
// most of what that takes: so a caller can say early which names it will ask for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::place {

class Names {
 public:
  using Id = std::uint32_t;

  static std::uint64_t hash(std::string_view name) { return std::hash<std::string_view>{}(name); }
  // Steps of a lookup that a caller may take for many names at a time, one after the other.
  void expect(std::uint64_t hash) const;       // its place in the table
  void expect_name(std::uint64_t hash) const;  // the name that stands there
  void expect_text(std::uint64_t hash) const;
  Id guess(std::uint64_t hash) const { return slots_[home(hash)].id; }  // mostly right
  std::optional<Id> find(std::string_view name, std::uint64_t hash) const;

  std::optional<Id> find(std::string_view name) const { return find(name, hash(name)); }
  void insert(std::string_view name, Id id);  // neither of which is there
  void erase(std::string_view name);
  std::string_view operator[](Id id) const {
    return std::string_view(text_).substr(names_[id].first, names_[id].length);
  }
  std::size_t size() const { return used_; }

 private:
  struct Slot {
    std::uint32_t high = 0;  // of the hash, so that few names are compared in vain
    Id id = kNone;
  };
  static constexpr Id kNone = ~Id{0};
  std::size_t home(std::uint64_t hash) const { return hash & (slots_.size() - 1); }
  std::size_t place_of(std::string_view name, std::uint64_t hash) const;
  void grow();
  void tidy();  // throws out the text of names that are gone

  std::vector<Slot> slots_ = std::vector<Slot>(64);  // a power of two, at most half of it in use
  struct Name {
    std::uint32_t first = 0;  // in text_
    std::uint32_t length = 0;
  };
  std::vector<Name> names_;  // by id
  std::string text_;         // of all, side by side: few pages to wait for
  std::size_t waste_ = 0;
  std::size_t used_ = 0;
};

}  // namespace gantry::place
