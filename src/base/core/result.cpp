// SPDX-License-Identifier: Apache-2.0
#include "base/core/result.hpp"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace gantry {
namespace {

Errc errc_from_errno(int err) {
  switch (err) {
    case ENOENT:
    case ENODEV:
    case ENXIO:
    case ESRCH: return Errc::NotFound;
    case EEXIST: return Errc::Exists;
    case EACCES:
    case EPERM:
    case EROFS: return Errc::Denied;
    case EBUSY:
    case ECONNREFUSED:
    case EAGAIN:
    case ETXTBSY: return Errc::Busy;
    case ENOSYS:
    case EOPNOTSUPP: return Errc::Unsupported;
    case ETIMEDOUT: return Errc::Timeout;
    case EINVAL:
    case ENOTDIR:
    case EISDIR:
    case ELOOP:
    case EXDEV:
    case ENAMETOOLONG: return Errc::Invalid;
    default: return Errc::Internal;
  }
}

}  // namespace

std::string_view to_string(Errc code) {
  switch (code) {
    case Errc::Invalid: return "invalid";
    case Errc::NotFound: return "not found";
    case Errc::Exists: return "exists";
    case Errc::Denied: return "denied";
    case Errc::Busy: return "busy";
    case Errc::Unsupported: return "unsupported";
    case Errc::Timeout: return "timeout";
    case Errc::Corrupt: return "corrupt";
    case Errc::Internal: return "internal";
    case Errc::TooLarge: return "too large";
  }
  return "unknown";
}

Error Error::sys(int err, std::string_view call) {
  std::array<char, 128> buffer{};
  const char* text = strerror_r(err, buffer.data(), buffer.size());
  Error error(errc_from_errno(err), fmt::format("{}: {}", call, text));
  error.errno_ = err;
  return error;
}

Error Error::advise(std::string_view remedy) && {
  if (!remedy.empty()) text_ += fmt::format("; {}", remedy);
  return std::move(*this);
}

Error Error::in(std::string_view doing) && {
  const auto length = text_.size();
  text_ = fmt::format("{}: {}", doing, text_);
  cause_length_ += text_.size() - length;
  return std::move(*this);
}

std::string Error::remedy() const {
  constexpr std::size_t kSeparator = 2;  // "; "
  return cause_length_ == text_.size() ? "" : text_.substr(cause_length_ + kSeparator);
}

void detail::value_of_failed_result(const Error& error) {
  fmt::print(stderr, "gantry: value of a failed result was used: {}\n", error.text());
  std::abort();
}

void assertion_failed(const char* expression, const char* file, int line) {
  fmt::print(stderr, "gantry: {}:{}: broken invariant: {}\n", file, line, expression);
  std::abort();
}

}  // namespace gantry
