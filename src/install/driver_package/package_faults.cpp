// SPDX-License-Identifier: Apache-2.0
#include "base/core/printable.hpp"
#include "base/core/text.hpp"
#include "install/driver_package/distribution.hpp"
#include "install/driver_package/distribution_internal.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace gantry::driver_package {
namespace {

constexpr std::size_t kOutput = std::size_t{1} << 20;  // of a package tool, as much as is looked at

// ---- zypper

// The next URL of one of NVIDIA's servers: "https://developer.nvidia.com/cuda-gpus".
std::string_view next_nvidia_url(std::string_view text, std::size_t& at) {
  for (; (at = text.find("http", at)) != std::string_view::npos; ++at) {
    auto url = text.substr(at);
    url = url.substr(0, url.find_first_of(" \t\r\n\"'`<>|])"));
    const auto begin = url.find("://");
    if (begin > 5) continue;  // npos, too
    const auto host = url.substr(begin + 3, url.find('/', begin + 3) - begin - 3);
    if (host != "nvidia.com" && !host.ends_with(".nvidia.com")) continue;
    at += url.size();
    return url;
  }
  return {};
}

std::string_view without_slashes(std::string_view url) {
  while (url.ends_with('/')) url.remove_suffix(1);
  return url;
}

// What is wrong with it; "" if nothing is known against it.
std::string fault_of(std::string_view url, std::string_view right) {
  const auto begin = url.find("://") + 3;
  const auto host = url.substr(begin, url.find('/', begin) - begin);
  const auto path = without_slashes(url.substr(std::min(begin + host.size(), url.size())));
  constexpr std::array<std::string_view, 5> kPages = {"developer.nvidia.com", "www.nvidia.com",
                                                      "nvidia.com", "docs.nvidia.com",
                                                      "forums.developer.nvidia.com"};
  if (std::ranges::find(kPages, host) != kPages.end())
    return "is a web page of NVIDIA's, not a repository of packages";
  if (host != "download.nvidia.com") return {};
  if (path.ends_with("/x86_64")) return "is a directory inside a repository, not the repository";
  if (!path.starts_with("/suse") && !path.starts_with("/opensuse")) return {};
  const auto expected = right.substr(std::min(right.size(), kSuseRepositories.size()));
  if (expected.empty() || path == expected) return {};
  return "is the repository of another version of SUSE's distributions";
}

// ---- clocks

struct Unit {
  std::string_view name;
  std::int64_t seconds;
};
constexpr std::array kUnits = {Unit{"min", 60}, Unit{"d", 86400}, Unit{"h", 3600}, Unit{"s", 1}};

// "2d 3h 4min 5s", as apt writes it. nullopt if it is of another form.
std::optional<std::int64_t> parse_span(std::string_view text) {
  std::int64_t total = 0;
  const auto words = split(trim(text), ' ');
  for (const auto word : words) {
    const auto digits =
        static_cast<std::size_t>(std::ranges::find_if_not(word, is_digit) - word.begin());
    const auto number = parse_u64(word.substr(0, digits));
    const auto* unit = std::ranges::find(kUnits, word.substr(digits), &Unit::name);
    if (!number || *number > 1'000'000'000 || unit == kUnits.end()) return std::nullopt;
    total += static_cast<std::int64_t>(*number) * unit->seconds;
  }
  if (words.empty()) return std::nullopt;
  return total;
}

std::string describe_span(std::int64_t seconds) {
  if (seconds >= 86400) return fmt::format("{} d {} h", seconds / 86400, seconds % 86400 / 3600);
  if (seconds >= 3600) return fmt::format("{} h {} min", seconds / 3600, seconds % 3600 / 60);
  if (seconds >= 60) return fmt::format("{} min", seconds / 60);
  return fmt::format("{} s", seconds);
}

std::string describe_time(std::int64_t seconds) {
  constexpr std::int64_t kEnd = 253'402'300'799;  // of year 9999
  const auto time = static_cast<std::time_t>(std::clamp<std::int64_t>(seconds, 0, kEnd));
  return fmt::format("{:%Y-%m-%d %H:%M} UTC", fmt::gmtime(time));
}

using Direction = ClockFault::Direction;

struct Mark {
  std::string_view text;
  Direction direction;
  bool has_span;
};
// apt, then what curl and OpenSSL say under dnf, zypper and tdnf.
constexpr std::array kMarks = {
    Mark{" is not valid yet (invalid for another ", Direction::Behind, true},
    Mark{" is expired (invalid since ", Direction::MaybeAhead, true},
    Mark{"certificate is not yet valid", Direction::Behind, false},
    Mark{"certificate has expired", Direction::MaybeAhead, false},
};

// ---- signatures

struct SignatureMark {
  std::string_view text;
  std::string_view sentence;
};
constexpr std::string_view kUnsigned = "the repository is not signed";
constexpr std::string_view kStranger = "the repository is signed with a key that is not trusted";
constexpr std::string_view kBadSignature = "the signature of the repository is wrong";
constexpr std::string_view kBadPackage = "a package has no signature of a trusted key";
// apt; zypper; dnf. The first one in the output counts.
constexpr std::array kSignatureMarks = {
    SignatureMark{"because the public key is not available", kStranger},
    SignatureMark{"The following signatures were invalid", kBadSignature},
    SignatureMark{"' is not signed.", kUnsigned},
    SignatureMark{"' is unsigned", kUnsigned},
    SignatureMark{"is signed with an unknown key", kStranger},
    SignatureMark{"Signature verification failed", kBadSignature},
    SignatureMark{"GPG signature verification error", kBadSignature},
    SignatureMark{"Public key for ", kBadPackage},
    SignatureMark{"are already installed but they are not correct", kBadPackage},
    SignatureMark{".rpm is not signed", kBadPackage},
    SignatureMark{"GPG check FAILED", kBadPackage},
};

std::string repository_before(std::string_view line, std::size_t at) {
  const auto begin = line.rfind("Release file for ", at);
  if (begin == std::string_view::npos) return {};
  return printable(line.substr(begin + 17, at - begin - 17));
}

std::optional<ClockFault> fault_in(std::string_view line) {
  for (const auto& mark : kMarks) {
    const auto at = line.find(mark.text);
    if (at == std::string_view::npos) continue;
    ClockFault fault{.direction = mark.direction};
    if (mark.has_span) {
      const auto rest = line.substr(at + mark.text.size());
      const auto span = parse_span(rest.substr(0, rest.find(')')));
      if (!span) continue;
      fault.seconds = *span;
      fault.repository = repository_before(line, at);
    }
    return fault;
  }
  return std::nullopt;
}

void write_sentence(ClockFault& fault, std::int64_t now) {
  const auto of =
      fault.repository.empty() ? "the server's certificate" : "the file of " + fault.repository;
  const auto says = fmt::format("the machine's clock says {}", describe_time(now));
  if (fault.direction == Direction::Behind && fault.seconds > 0) {
    fault.sentence = fmt::format(
        "{}, but {} is {} newer: the clock is at least that much behind, and it is {} or later",
        says, of, describe_span(fault.seconds), describe_time(now + fault.seconds));
  } else if (fault.direction == Direction::Behind) {
    fault.sentence = fmt::format("{}, but {} begins later: the clock is behind", says, of);
  } else if (fault.seconds > 0) {
    fault.sentence = fmt::format(
        "{}, and {} ended {} before that: the clock is ahead, or the mirror "
        "is out of date",
        says, of, describe_span(fault.seconds));
  } else {
    fault.sentence = fmt::format(
        "{}, and {} ended before that: the clock is ahead, or the certificate is old", says, of);
  }
  fault.remedy =
      "set the clock (`timedatectl set-ntp true`, `chronyc makestep`, or `date -u -s "
      "'YYYY-MM-DD HH:MM'`) and try again; the options Acquire::Check-Valid-Until=false and "
      "Acquire::Check-Date=false of apt only hide it, and certificates stay invalid";
}

}  // namespace

std::optional<Error> recognise_wrong_suse_url(std::string_view text, const OsRelease& release) {
  text = text.substr(0, kOutput);
  const auto right = suse_repository(release, kSuseRepositories);
  std::string_view url;
  std::string fault;
  for (std::size_t at = 0; fault.empty();) {
    url = next_nvidia_url(text, at);
    if (url.empty()) return std::nullopt;
    fault = fault_of(url, right.ok() ? std::string_view(*right) : std::string_view());
  }
  const auto remedy = right.ok()
                          ? fmt::format(
                                "remove it with `zypper removerepo nvidia`, then `zypper addrepo "
                                "--refresh {} nvidia`",
                                *right)
                          : std::string(
                                "look for the repository of your version below "
                                "https://download.nvidia.com/suse/ and "
                                "https://download.nvidia.com/opensuse/");
  return Error(Errc::Invalid, fmt::format("{} {}", printable(url), fault)).advise(remedy);
}

std::optional<Error> recognise_signature_fault(std::string_view output) {
  output = output.substr(0, kOutput);
  for (const auto line : lines(output)) {
    for (const auto& mark : kSignatureMarks) {
      if (!contains(line, mark.text)) continue;
      return Error(Errc::Denied, fmt::format("{} ({})", mark.sentence, printable(trim(line))))
          .advise(
              "nothing proves where its packages come from: use the vendor's own repository, or a "
              "mirror that has its signatures, too");
    }
  }
  return std::nullopt;
}

// Of several repositories, the one whose file is newest says most.
std::optional<ClockFault> recognise_clock_fault(std::string_view output, std::int64_t now) {
  std::optional<ClockFault> worst;
  for (const auto line : lines(output.substr(0, kOutput))) {
    auto fault = fault_in(line);
    if (!fault) continue;
    const bool surer =
        worst && worst->direction == Direction::MaybeAhead && fault->direction == Direction::Behind;
    const bool larger =
        worst && worst->direction == fault->direction && fault->seconds > worst->seconds;
    if (!worst || surer || larger) worst = std::move(fault);
  }
  if (worst) write_sentence(*worst, now);
  return worst;
}

}  // namespace gantry::driver_package
