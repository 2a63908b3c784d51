// SPDX-License-Identifier: Apache-2.0
// Result<T>: a value, or the error that explains why there is none. Every function that can fail
// returns one; dropping it is a compiler warning. Exceptions never cross a module border.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace gantry {

// The reasons that a caller may branch on. All other detail is in the text.
enum class Errc : std::uint8_t {
  Invalid,
  NotFound,
  Exists,
  Denied,
  Busy,
  Unsupported,
  Timeout,
  Corrupt,
  Internal,
  TooLarge  // beyond a limit of ours; a smaller part may be read
};

std::string_view to_string(Errc code);

class [[nodiscard]] Error {
 public:
  Error(Errc code, std::string cause)
      : code_(code), text_(std::move(cause)), cause_length_(text_.size()) {}

  // The caller passes errno, read before another call can overwrite it. The text is "call:
  // strerror".
  static Error sys(int err, std::string_view call);

  // Adds what helps: a command, or a sentence that says what to write instead. The text becomes
  // "cause; remedy".
  Error advise(std::string_view remedy) &&;

  // Adds what was being done in front of the cause: "doing: inner cause". The remedy stays.
  Error in(std::string_view doing) &&;

  Errc code() const { return code_; }
  int sys_errno() const { return errno_; }  // 0 when no system call failed
  // The whole sentence for people: "cause; remedy". Code that needs a part asks for it below.
  const std::string& text() const { return text_; }
  std::string cause() const { return text_.substr(0, cause_length_); }
  std::string remedy() const;  // "" if there is none

 private:
  Errc code_;
  int errno_ = 0;
  std::string text_;
  std::size_t cause_length_;
};

namespace detail {
[[noreturn]] void value_of_failed_result(const Error& error);
}

template <class T = std::monostate>
class [[nodiscard]] Result {
 public:
  Result() requires std::is_same_v<T, std::monostate> : state_(T{}) {}
  Result(T value) : state_(std::move(value)) {}      // NOLINT: implicit on purpose
  Result(Error error) : state_(std::move(error)) {}  // NOLINT: implicit on purpose

  explicit operator bool() const { return std::holds_alternative<T>(state_); }
  bool ok() const { return std::holds_alternative<T>(state_); }

  T& operator*() & { return checked(); }
  const T& operator*() const& { return const_cast<Result*>(this)->checked(); }
  T&& operator*() && { return std::move(checked()); }
  T* operator->() { return &checked(); }
  const T* operator->() const { return &const_cast<Result*>(this)->checked(); }

  const Error& error() const& { return std::get<Error>(state_); }
  Error&& error() && { return std::get<Error>(std::move(state_)); }

  T value_or(T other) && { return ok() ? std::move(checked()) : std::move(other); }

  // Adds context to an error; a success is returned unchanged.
  Result in(std::string_view doing) && {
    if (!ok()) return std::get<Error>(std::move(state_)).in(doing);
    return std::move(*this);
  }

 private:
  T& checked() {
    if (!ok()) detail::value_of_failed_result(std::get<Error>(state_));
    return std::get<T>(state_);
  }
  std::variant<T, Error> state_;
};

using Status = Result<>;

[[noreturn]] void assertion_failed(const char* expression, const char* file, int line);

}  // namespace gantry

#define GANTRY_CONCAT_(a, b) a##b
#define GANTRY_CONCAT(a, b) GANTRY_CONCAT_(a, b)

// GANTRY_TRY(auto fd, host.open(path)): declares fd, or returns the error.
#define GANTRY_TRY(declaration, expression) \
  GANTRY_TRY_(declaration, expression, GANTRY_CONCAT(gantry_result_, __LINE__))
#define GANTRY_TRY_(declaration, expression, result)  \
  auto result = (expression);                         \
  if (!result.ok()) return std::move(result).error(); \
  declaration = *std::move(result)

// For a Status, which has no value to declare.
#define GANTRY_CHECK(expression)                                      \
  do {                                                                \
    auto gantry_status = (expression);                                \
    if (!gantry_status.ok()) return std::move(gantry_status).error(); \
  } while (false)

// A broken invariant is not an error: it ends the process, in releases too.
#define GANTRY_ASSERT(expression) \
  ((expression) ? void() : ::gantry::assertion_failed(#expression, __FILE__, __LINE__))
