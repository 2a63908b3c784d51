// SPDX-License-Identifier: Apache-2.0
#include "base/core/clock.hpp"
#include "base/core/printable.hpp"
#include "base/core/text.hpp"
#include "base/sys/socket_wait.hpp"
#include "install/driver_package/transfer_internal.hpp"
#include "net/http/client.hpp"

#include <poll.h>

#include <fmt/format.h>

#include <algorithm>

namespace gantry::driver_package {
namespace {

constexpr int kRedirections = 5;
constexpr std::uint64_t kReport = std::uint64_t{1} << 20;
// An attempt that brings less does not count as one that gets on: a server that sends a byte and
// closes is not asked millions of times.
constexpr std::uint64_t kGettingOn = std::uint64_t{1} << 20;
constexpr std::uint64_t kSlowest = std::uint64_t{64} << 10;  // bytes in request.slowest
constexpr std::chrono::milliseconds kLongestPause{30'000};

bool is_redirection(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

bool may_pass(int status) {
  return status >= 500 || status == 408 || status == 425 || status == 429;
}

bool is_stopped(const DownloadRequest& request) {
  return request.cancel >= 0 && sys::is_readable(request.cancel);
}

// A certificate that is refused is refused again.
bool is_distrust(const Error& error) {
  return contains(error.text(), "certificate is not trusted");
}

Error with_clock_hint(Error error) {
  const bool by_clock =
      contains(error.text(), "not yet valid") || contains(error.text(), "has expired");
  return std::move(error).advise(
      by_clock ? "compare the machine's clock with `date -u`: a wrong clock makes certificates "
                 "invalid"
               : "check that the URL names the right server; a mirror with an authority of its own "
                 "needs that authority among the machine's");
}

}  // namespace

Error Transfer::give_up(Error error) {
  final_ = true;
  return error;
}

Status Transfer::run() {
  furthest_ = part_.size();
  pause_ = request_.pause;
  for (int left = request_.tries; true;) {
    auto done = attempt();
    if (done.ok()) return {};
    if (is_stopped(request_)) return Error(Errc::Timeout, "the download was stopped");
    if (final_ || done.error().code() == Errc::TooLarge) return done;
    if (is_distrust(done.error())) return with_clock_hint(std::move(done).error());
    if (part_.size() >= furthest_ + kGettingOn) {
      left = request_.tries;
      pause_ = request_.pause;
    }
    furthest_ = std::max(furthest_, part_.size());
    if (--left <= 0) return done;
    GANTRY_CHECK(wait_before_next(done.error()));
  }
}

Status Transfer::wait_before_next(const Error& failure) {
  progress_.note(fmt::format(
      "{}, after {}{}; trying again in {} ms", failure.cause(), human_bytes(part_.size()),
      total_ == 0 ? "" : fmt::format(" of {}", human_bytes(total_)), pause_.count()));
  pollfd stop{.fd = request_.cancel, .events = POLLIN, .revents = 0};  // poll ignores -1
  if (::poll(&stop, 1, static_cast<int>(pause_.count())) > 0)
    return Error(Errc::Timeout, "the download was stopped");
  pause_ = std::min(pause_ * 2, kLongestPause);
  return {};
}

Status Transfer::attempt() {
  auto url = request_.package.url;
  for (int hop = 0; hop <= kRedirections; ++hop) {
    GANTRY_TRY(const auto response, ask(url).in(printable(url)));
    if (response.status / 100 == 2) return is_complete().in(printable(url));
    if (!is_redirection(response.status)) return judge_refusal(response, url);
    const auto* location = http::find(response.headers, "Location");
    auto next = redirect(url, location == nullptr ? "" : *location, request_);
    if (!next.ok()) return give_up(std::move(next).error().in(printable(url)));
    url = *std::move(next);
  }
  return give_up(Error(Errc::Invalid, fmt::format("{}: more than {} redirections",
                                                  request_.package.url, kRedirections)));
}

Result<http::Response> Transfer::ask(const std::string& url) {
  auto parsed = http::parse_url(url);
  if (!parsed.ok()) return give_up(std::move(parsed).error());
  parsed->endpoint.tls.authorities = request_.authorities;
  http::Request request;
  request.target = parsed->prefix.empty() ? "/" : parsed->prefix;
  request.headers = {{"User-Agent", "gantry/" GANTRY_VERSION}, {"Accept-Encoding", "identity"}};
  if (part_.info().url != request_.package.url && part_.size() > 0)
    GANTRY_CHECK(begin_again("what is there is of another URL"));
  if (part_.size() > 0) {
    request.headers.push_back({"Range", fmt::format("bytes={}-", part_.size())});
    if (!part_.info().validator.empty())
      request.headers.push_back({"If-Range", part_.info().validator});
  }
  http::Client client(parsed->endpoint, request_.cancel);
  return client.receive(
      request,
      {.head = [this](const http::Response& head) { return on_head(head); },
       .piece = [this](std::string_view bytes) { return on_piece(bytes); }},
      {.stall = request_.stall, .bytes = std::max(request_.limit_bytes, request_.package.bytes)});
}

Status Transfer::begin_again(std::string_view why) {
  progress_.note(fmt::format("{}: begins again", why));
  return part_.clear();
}

Status Transfer::on_head(const http::Response& head) {
  const auto* coding = http::find(head.headers, "Content-Encoding");
  if (coding != nullptr && to_lower(*coding) != "identity")
    return give_up(Error(Errc::Unsupported, "the server packs the file once more")
                       .advise("use another mirror"));
  const auto* type = http::find(head.headers, "Content-Type");
  if (type != nullptr && to_lower(*type).starts_with("text/html"))
    return give_up(Error(Errc::Invalid, "the server answers with a web page, not with the file")
                       .advise("check the URL and whether a proxy asks for a login"));
  std::optional<std::uint64_t> total;
  if (head.status == 206) {
    const auto* range = http::find(head.headers, "Content-Range");
    const auto part = range == nullptr ? std::nullopt : parse_content_range(*range);
    if (!part || part->first != part_.size()) {
      GANTRY_CHECK(begin_again("the server sent another part than was asked for"));
      return Error(Errc::Corrupt, "the server sent another part than was asked for");
    }
    total = part->total;
    if (total && part_.info().total != 0 && *total != part_.info().total) {
      GANTRY_CHECK(begin_again("the server has another file now"));
      return Error(Errc::Corrupt, "the server has another file now");
    }
  } else if (head.status == 200) {
    if (part_.size() > 0)
      GANTRY_CHECK(begin_again("the server has another file now, or cannot continue"));
    const auto* length = http::find(head.headers, "Content-Length");
    if (length != nullptr) total = parse_u64(*length);
  } else {
    return give_up(Error(Errc::Unsupported, fmt::format("the server answers {}", head.status)));
  }
  total_ = total.value_or(0);
  const auto pinned = request_.package.bytes;
  if (pinned != 0 && total_ != 0 && total_ != pinned)
    return give_up(Error(Errc::Denied, fmt::format("the server's file has {} bytes, but {} bytes "
                                                   "were asked for",
                                                   total_, pinned)));
  if (total_ > request_.limit_bytes)
    return Error(Errc::TooLarge, fmt::format("the file has {}, more than {}", human_bytes(total_),
                                             human_bytes(request_.limit_bytes)));
  auto stored = part_.set_info(
      {.url = request_.package.url, .validator = validator_of(head), .total = total_});
  if (stored.ok()) stored = part_.reserve(total_);
  if (!stored.ok()) return give_up(std::move(stored).error());
  measured_from_ = Clock::now();
  measured_ = 0;
  return {};
}

Status Transfer::check_speed(std::size_t bytes) {
  measured_ += bytes;
  const auto now = Clock::now();
  if (now - measured_from_ < request_.slowest) return {};
  if (measured_ < kSlowest)
    return Error(Errc::Timeout,
                 fmt::format("the server sends less than {} in {} s", human_bytes(kSlowest),
                             std::chrono::ceil<std::chrono::seconds>(request_.slowest).count()));
  measured_from_ = now;
  measured_ = 0;
  return {};
}

Status Transfer::on_piece(std::string_view bytes) {
  GANTRY_CHECK(check_speed(bytes.size()));
  const auto most = request_.package.bytes != 0 ? request_.package.bytes : request_.limit_bytes;
  if (part_.size() + bytes.size() > most)
    return Error(Errc::TooLarge, fmt::format("the server sends more than {} bytes", most));
  auto written = part_.append(bytes);
  if (!written.ok()) return give_up(std::move(written).error());
  if (part_.size() >= reported_ + kReport || part_.size() < reported_ || part_.size() == total_) {
    reported_ = part_.size();
    progress_.bytes(part_.size(), total_);
  }
  return {};
}

Status Transfer::is_complete() const {
  const auto wanted = total_ != 0 ? total_ : request_.package.bytes;
  if (wanted == 0 || part_.size() == wanted) return {};
  return Error(Errc::Corrupt, fmt::format("the server sent {} of {} bytes", part_.size(), wanted));
}

Status Transfer::judge_refusal(const http::Response& response, std::string_view url) {
  const auto status = response.status;
  const auto shown = printable(url);
  const auto answer =
      fmt::format("{}: the server answers {} {}", shown, status, http::reason_of(status));
  if (status == 416) {  // what is there has all bytes, or belongs to another file
    const auto* range = http::find(response.headers, "Content-Range");
    if (range != nullptr && *range == fmt::format("bytes */{}", part_.size())) return {};
    GANTRY_CHECK(begin_again("the server has a shorter file now"));
    return Error(Errc::Corrupt, answer);
  }
  if (may_pass(status)) return Error(Errc::Busy, answer);
  if (status == 404 || status == 410)
    return give_up(Error(Errc::NotFound, answer)
                       .advise("check the version: NVIDIA does not offer every version in every "
                               "directory (XFree86/Linux-x86_64, tesla)"));
  if (status == 401 || status == 403 || status == 407)
    return give_up(Error(Errc::Denied, answer)
                       .advise("download the file with your account and give it with --run-file"));
  return give_up(Error(Errc::Unsupported, answer));
}

}  // namespace gantry::driver_package
