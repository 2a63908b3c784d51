// SPDX-License-Identifier: Apache-2.0
#include "base/core/printable.hpp"
#include "base/json/writer.hpp"
#include "base/log/log.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <iterator>

namespace gantry {
namespace {

template <class... Functions>
struct Overload : Functions... {
  using Functions::operator()...;
};
template <class... Functions>
Overload(Functions...) -> Overload<Functions...>;

std::string_view to_string(LogLevel level) {
  constexpr std::array<std::string_view, 5> kNames{"debug", "info", "warning", "error", "fatal"};
  return kNames[static_cast<std::size_t>(level)];
}

char letter_of(LogLevel level) {
  return "IIWEF"[static_cast<std::size_t>(level)];
}

std::int64_t micros_of(const LogLine& line) {
  return std::chrono::duration_cast<std::chrono::microseconds>(line.time.time_since_epoch())
      .count();
}

// "2021-03-11T05:51:00", in UTC.
std::string utc(std::int64_t micros) {
  const auto seconds = static_cast<std::time_t>(micros / 1'000'000);
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}", parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec);
}

// Calls `write` with the key and the value of each field. An error has two: its cause and its
// remedy.
template <class Write>
void for_each_field(LogFields fields, Write&& write) {
  for (const auto& field : fields) {
    std::visit(Overload{[](std::monostate) {},
                        [&](const Error* error) {
                          write(field.key(), std::string_view(error->cause()));
                          const auto remedy = error->remedy();
                          if (!remedy.empty()) write("remedy", std::string_view(remedy));
                        },
                        [&](const auto& value) { write(field.key(), value); }},
               field.value());
  }
}

std::string quoted(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '"' || c == '\\') escaped += '\\';
    escaped += c;
  }
  return '"' + printable(escaped) + '"';
}

// Logrus quotes only what needs it.
std::string quoted_if_needed(std::string_view text) {
  constexpr std::string_view kPlain = "-._/@^+";
  const bool plain = !text.empty() && std::all_of(text.begin(), text.end(), [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           kPlain.find(c) != std::string_view::npos;
  });
  return plain ? std::string(text) : quoted(text);
}

using Quote = std::string (*)(std::string_view text);

void append_list(std::string& out, const std::vector<std::string>& list) {
  out += '[';
  for (const auto& text : list) {
    if (&text != &list.front()) out += ',';
    out += quoted(text);
  }
  out += ']';
}

// " key=value" for each field.
void append_fields(std::string& out, LogFields fields, Quote quote) {
  for_each_field(fields, [&](std::string_view key, const auto& value) {
    out += ' ';
    out += key;
    out += '=';
    using Value = std::decay_t<decltype(value)>;
    if constexpr (std::is_same_v<Value, std::string_view>) {
      out += quote(value);
    } else if constexpr (std::is_arithmetic_v<Value>) {
      fmt::format_to(std::back_inserter(out), "{}", value);
    } else {
      append_list(out, *value);
    }
  });
  out += '\n';
}

void write_fields(json::Writer& out, LogFields fields) {
  for_each_field(fields, [&](std::string_view key, const auto& value) {
    if constexpr (std::is_pointer_v<std::decay_t<decltype(value)>>) {
      out.array(key, *value);
    } else {
      out.member(key, value);
    }
  });
}

std::string klog_line(const LogLine& line, int pid_width) {
  const auto micros = micros_of(line);
  const auto seconds = static_cast<std::time_t>(micros / 1'000'000);
  std::tm local{};
  ::localtime_r(&seconds, &local);
  auto out = fmt::format("{}{:02}{:02} {:02}:{:02}:{:02}.{:06} {:{}} {}] {}", letter_of(line.level),
                         local.tm_mon + 1, local.tm_mday, local.tm_hour, local.tm_min, local.tm_sec,
                         micros % 1'000'000, line.pid, pid_width, printable(line.component),
                         printable(line.text));
  append_fields(out, line.fields, quoted);
  return out;
}

std::string json_line(const LogLine& line) {
  const auto micros = micros_of(line);
  json::Writer out;
  out.object([&] {
    out.member("time", fmt::format("{}.{:06}Z", utc(micros), micros % 1'000'000));
    out.member("level", to_string(line.level));
    if (!line.component.empty()) out.member(line.component_key, line.component);
    out.member("msg", line.text);
    write_fields(out, line.fields);
  });
  return std::move(out).text() + '\n';
}

std::string logrus_line(const LogLine& line) {
  auto out = fmt::format("time=\"{}Z\" level={} msg={}", utc(micros_of(line)),
                         to_string(line.level), quoted(line.text));
  append_fields(out, line.fields, quoted_if_needed);
  return out;
}

// An engine decodes the message and prints it to its user's terminal.
std::string logrus_json_line(const LogLine& line) {
  json::Writer out;
  out.object([&] {
    out.member("level", to_string(line.level));
    out.member("msg", printable(line.text));
    out.member("time", utc(micros_of(line)) + 'Z');
    write_fields(out, line.fields);
  });
  return std::move(out).text() + '\n';
}

std::string plain_line(const LogLine& line) {
  auto out = fmt::format("{}{}{}", printable(line.component), line.component.empty() ? "" : ": ",
                         printable(line.text));
  append_fields(out, line.fields, quoted);
  return out;
}

}  // namespace

std::string format_log_line(LogForm form, const LogLine& line) {
  constexpr int kKlogPidWidth = 7;
  switch (form) {
    case LogForm::Klog: return klog_line(line, kKlogPidWidth);
    case LogForm::ContainerCli: return klog_line(line, 0);
    case LogForm::Json: return json_line(line);
    case LogForm::Logrus: return logrus_line(line);
    case LogForm::LogrusJson: return logrus_json_line(line);
    case LogForm::Plain: return plain_line(line);
  }
  return "";
}

}  // namespace gantry
