// SPDX-License-Identifier: Apache-2.0
// What the tests of downloads have in common.
#pragma once

#include "install/driver_package/download.hpp"
#include "install/driver_package/file_server_for_test.hpp"
#include "support/tree.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gantry::driver_package {

using namespace std::chrono_literals;

inline constexpr std::string_view kName = "NVIDIA-Linux-x86_64-580.159.04.run";

inline std::string digest_of(std::string_view bytes) {
  Sha256 digest;
  digest.add(bytes);
  return digest.finish();
}

// A file in which every part differs from every other.
inline std::string some_file(std::size_t size, char seed = 'a') {
  std::string text;
  for (std::size_t i = 0; text.size() < size; ++i) text += fmt::format("{}{} ", seed, i * 7919);
  text.resize(size);
  return text;
}

class Notes : public DownloadProgress {
 public:
  void bytes(std::uint64_t done, std::uint64_t total) override { last = {done, total}; }
  void note(std::string_view sentence) override { notes.emplace_back(sentence); }
  std::vector<std::string> notes;
  std::pair<std::uint64_t, std::uint64_t> last;
};

class DownloadTest : public testing::Test {
 protected:
  DownloadRequest request(const FileServer& server, std::string_view body) const {
    return {.package = {.version = "580.159.04",
                        .url = server.url(fmt::format("/driver/{}", kName)),
                        .sha256 = digest_of(body)},
            .directory = "/var/lib/gantry/downloads",
            .stall = 20s,
            .pause = 0ms,
            .tries = 3};
  }
  Result<Downloaded> get(const DownloadRequest& wanted) {
    return download(tree_.host(), wanted, notes_);
  }
  std::string content(std::string_view suffix = "") const {
    return tree_.host()
        .read(fmt::format("/var/lib/gantry/downloads/{}{}", kName, suffix))
        .value_or("(not there)");
  }
  std::vector<std::string> names() const {
    return tree_.host().list("/var/lib/gantry/downloads").value_or({});
  }

  test::Tree tree_;
  Notes notes_;
};

}  // namespace gantry::driver_package
