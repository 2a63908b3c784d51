// SPDX-License-Identifier: Apache-2.0
// Brings a part file to its end, over as many connections as that takes.
#pragma once

#include "base/core/result.hpp"
#include "install/driver_package/download.hpp"
#include "install/driver_package/part_file_internal.hpp"
#include "net/http/message.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gantry::driver_package {

// "bytes 10-99/100": the part that a server sends. `total`: nullopt if it does not know.
struct ContentRange {
  std::uint64_t first = 0;
  std::optional<std::uint64_t> total;
};
std::optional<ContentRange> parse_content_range(std::string_view value);

// A header that If-Range may have: a strong ETag, or else the date; "" if there is neither.
std::string validator_of(const http::Response& head);

// Where a redirection leads; Denied if it leads from https to http and nothing else protects the
// file, Invalid if it is not a URL.
Result<std::string> redirect(std::string_view from, std::string_view location,
                             const DownloadRequest& request);

class Transfer {
 public:
  Transfer(const DownloadRequest& request, PartFile& part, DownloadProgress& progress)
      : request_(request), part_(part), progress_(progress) {}

  // Ok: all bytes are in the part file. Otherwise the last failure, and what came stays.
  Status run();

 private:
  Status attempt();  // over one server, or those that it names instead
  Result<http::Response> ask(const std::string& url);
  Status on_head(const http::Response& head);
  Status begin_again(std::string_view why);
  Status on_piece(std::string_view bytes);
  Status judge_refusal(const http::Response& response, std::string_view url);
  Status check_speed(std::size_t bytes);
  Status is_complete() const;
  Status wait_before_next(const Error& failure);
  Error give_up(Error error);  // another attempt would end in the same way

  const DownloadRequest& request_;
  PartFile& part_;
  DownloadProgress& progress_;
  std::uint64_t total_ = 0;     // 0 = not known
  std::uint64_t furthest_ = 0;  // bytes, over all attempts
  std::uint64_t reported_ = 0;
  std::chrono::milliseconds pause_{0};
  std::chrono::steady_clock::time_point measured_from_{};
  std::uint64_t measured_ = 0;  // bytes since then
  bool final_ = false;
};

}  // namespace gantry::driver_package
