// SPDX-License-Identifier: Apache-2.0
// Maps names of nodes and uids of pods to numbers. A filter looks up every node of the cluster, and
// most of that time is waiting for memory, so a caller can prefetch the names that it will look up.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::placement {

class NameTable {
 public:
  using Id = std::uint32_t;

  // Names are short and many: hashes eight characters at a time, without a call.
  static std::uint64_t hash(std::string_view name) {
    constexpr std::uint64_t kOdd = 0x9E3779B97F4A7C15;  // from the golden ratio
    std::uint64_t sum = name.size() * kOdd;
    const auto mix = [&](std::uint64_t part) {
      sum = (sum ^ part) * kOdd;
      sum ^= sum >> 32;
    };
    for (; name.size() >= 8; name.remove_prefix(8)) mix(eight(name));
    std::uint64_t rest = 0;
    for (const char c : name) rest = rest << 8 | static_cast<unsigned char>(c);
    mix(rest);
    return sum * kOdd;
  }
  // The steps of a lookup, so that a caller can do each step for many names.
  void prefetch(std::uint64_t hash) const { __builtin_prefetch(&slots_[home(hash)]); }
  void prefetch_name(std::uint64_t hash) const {
    if (const auto id = guess(hash); id != kNone) __builtin_prefetch(&names_[id]);
  }
  void prefetch_text(std::uint64_t hash) const {
    if (const auto id = guess(hash); id != kNone)
      __builtin_prefetch(text_.data() + names_[id].first);
  }
  Id guess(std::uint64_t hash) const { return slots_[home(hash)].id; }  // usually correct
  std::optional<Id> find(std::string_view name, std::uint64_t hash) const {
    const auto id = slots_[slot_index(name, hash)].id;
    return id == kNone ? std::nullopt : std::optional(id);
  }

  std::optional<Id> find(std::string_view name) const { return find(name, hash(name)); }
  void insert(std::string_view name, Id id);  // neither may exist
  void erase(std::string_view name);
  std::string_view operator[](Id id) const {
    return {text_.data() + names_[id].first, names_[id].length};
  }
  std::size_t size() const { return used_; }

 private:
  struct Slot {
    std::uint32_t high = 0;  // of the hash, so that few names are compared needlessly
    Id id = kNone;
  };
  static constexpr Id kNone = ~Id{0};
  static std::uint64_t eight(std::string_view text) {
    std::uint64_t read = 0;
    std::memcpy(&read, text.data(), sizeof(read));
    return read;
  }
  std::size_t home(std::uint64_t hash) const { return hash & (slots_.size() - 1); }
  static std::uint32_t high_of(std::uint64_t hash) {
    return static_cast<std::uint32_t>(hash >> 32);
  }
  // The index of the name, or of the free slot for it.
  std::size_t slot_index(std::string_view name, std::uint64_t hash) const {
    const auto mask = slots_.size() - 1;
    for (auto at = home(hash);; at = (at + 1) & mask) {
      const auto& slot = slots_[at];
      if (slot.id == kNone || (slot.high == high_of(hash) && (*this)[slot.id] == name)) return at;
    }
  }
  void grow();
  void tidy();  // removes the text of names that are gone

  std::vector<Slot> slots_ = std::vector<Slot>(64);  // a power of two, at most half of it in use
  struct Name {
    std::uint32_t first = 0;  // offset in text_
    std::uint32_t length = 0;
  };
  std::vector<Name> names_;  // by id
  std::string text_;         // all names in sequence: few pages to wait for
  std::size_t waste_ = 0;
  std::size_t used_ = 0;
};

}  // namespace gantry::placement
