// SPDX-License-Identifier: Apache-2.0
// Replaces identities in texts: UUIDs, serial numbers, names of hosts and users, addresses. The
// same identity has the same replacement in all texts of one mask, so that they can be compared.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

namespace gantry::doctor {

class IdentityMask {
 public:
  // A word that is an identity although it does not look like one: a host name, a serial number.
  // Words of less than three characters are ignored, because they occur in other meanings.
  void add_word(std::string_view word, std::string_view replacement_prefix);

  std::string apply(std::string_view text);

 private:
  // Each appends the replacement of the identity at the beginning of the text, and returns how many
  // bytes it replaced; 0: there is no such identity.
  std::size_t mask_user(std::string_view text, std::string& out);
  std::size_t mask_known_word(std::string_view text, std::string& out);
  std::size_t mask_address(std::string_view text, std::string& out);
  std::string mask_word(std::string_view word);
  std::string numbered(const std::string& key, std::string_view kind);

  std::map<std::string, std::string, std::less<>> known_;  // identity -> replacement
  std::map<std::string, std::string, std::less<>> words_;
  std::map<std::string, std::size_t, std::less<>> counts_;  // of each kind
};

}  // namespace gantry::doctor
