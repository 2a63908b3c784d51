// SPDX-License-Identifier: Apache-2.0
#include "install/driver_package/download_for_test.hpp"
#include "install/driver_package/part_file_internal.hpp"
#include "install/driver_package/transfer_internal.hpp"

namespace gantry::driver_package {
namespace {

using testing::HasSubstr;

DownloadRequest of(std::string url, std::string sha256 = "", std::string digest_url = "") {
  return {.package = {.url = std::move(url), .sha256 = std::move(sha256)},
          .directory = "/d",
          .digest_url = std::move(digest_url)};
}

TEST(DigestSource, ADownloadNeedsAPinnedDigest) {
  const auto refused = check_digest_source(of("https://a.org/x.run"));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Errc::Denied);
  EXPECT_THAT(refused.error().text(), HasSubstr("--trust-download-without-digest"));
  EXPECT_TRUE(check_digest_source(of("https://a.org/x.run", digest_of(""))).ok());
  EXPECT_TRUE(check_digest_source(of("http://a.org/x.run", digest_of(""))).ok());
  EXPECT_EQ(check_digest_source(of("https://a.org/x.run", "abc")).error().code(), Errc::Invalid);
}

TEST(DigestSource, ADigestOfTheSameServerIsNone) {
  const auto refused = check_digest_source(
      of("https://a.org/x.run", digest_of(""), "https://A.org:8443/x.run.sha256sum"));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Errc::Denied);
  EXPECT_THAT(refused.error().text(), HasSubstr("proves nothing"));
  EXPECT_THAT(refused.error().text(), HasSubstr("--trust-download-without-digest"));
  EXPECT_TRUE(
      check_digest_source(of("https://a.org/x.run", digest_of(""), "https://b.org/sums")).ok());
}

TEST(DigestSource, TrustNeedsHttps) {
  auto wanted = of("https://a.org/x.run");
  wanted.trust_without_digest = true;
  EXPECT_TRUE(check_digest_source(wanted).ok());
  wanted.package.url = "http://a.org/x.run";
  EXPECT_EQ(check_digest_source(wanted).error().code(), Errc::Denied);
}

TEST(Redirection, StaysWithTheRulesOfTheFirstUrl) {
  auto wanted = of("https://a.org/d/x.run", digest_of(""));
  EXPECT_EQ(*redirect("https://a.org:8443/d/x.run", "/y", wanted), "https://a.org:8443/y");
  EXPECT_EQ(*redirect("https://a.org/d/x.run", "//b.org/y#z", wanted), "https://b.org/y");
  EXPECT_EQ(*redirect("https://a.org/x", "http://b.org/y", wanted), "http://b.org/y");
  EXPECT_EQ(*redirect("https://a.org/d/x.run?v=1", "y.run", wanted), "https://a.org/d/y.run");
  EXPECT_EQ(*redirect("https://a.org/d/e/x.run", "../f/./y.run?k=../z", wanted),
            "https://a.org/d/f/y.run?k=../z");
  EXPECT_EQ(*redirect("https://a.org/x", "../../y", wanted), "https://a.org/y");
  EXPECT_EQ(*redirect("https://a.org", "y", wanted), "https://a.org/y");
  EXPECT_EQ(*redirect("https://a.org/d/x?a", "?b", wanted), "https://a.org/d/x?b");
  EXPECT_EQ(*redirect("https://a.org/d/e/x", "..", wanted), "https://a.org/d/");
  EXPECT_FALSE(redirect("https://a.org/d/x", "y:1/z", wanted).ok()) << "a scheme that is not known";
  EXPECT_FALSE(redirect("https://a.org/x", "", wanted).ok());
  EXPECT_FALSE(redirect("https://a.org/x", "ftp://b.org/y", wanted).ok());
  wanted.digest_url = "https://b.org/sums";
  EXPECT_EQ(redirect("https://a.org/x", "https://b.org/y", wanted).error().code(), Errc::Denied);
  wanted = of("https://a.org/d/x.run");
  wanted.trust_without_digest = true;
  EXPECT_EQ(redirect("https://a.org/x", "http://b.org/y", wanted).error().code(), Errc::Denied);
}

TEST(ContentRangeHeader, IsReadOrRefused) {
  EXPECT_EQ(parse_content_range("bytes 10-99/100")->first, 10U);
  EXPECT_EQ(parse_content_range("bytes 10-99/100")->total, 100U);
  EXPECT_EQ(parse_content_range("bytes 10-99/*")->total, std::nullopt);
  for (const auto* bad : {"", "bytes", "bytes */100", "bytes 10-9/100", "bytes 10-100/100",
                          "bytes -9/100", "items 1-2/3", "bytes 1/2-3", "bytes 1-2/x"})
    EXPECT_FALSE(parse_content_range(bad)) << bad;
}

TEST(Validator, IsStrong) {
  const auto of_headers = [](http::Headers headers) {
    return validator_of({.headers = std::move(headers)});
  };
  EXPECT_EQ(of_headers({{"ETag", "\"x\""}, {"Last-Modified", "then"}}), "\"x\"");
  EXPECT_EQ(of_headers({{"ETag", "W/\"x\""}, {"Last-Modified", "then"}}), "then");
  EXPECT_EQ(of_headers({{"ETag", "W/\"x\""}}), "");
  EXPECT_EQ(of_headers({{"ETag", "\"" + std::string(300, 'x') + "\""}}), "");
}

TEST(PartInfoFile, IsWrittenAndRead) {
  const PartInfo info{.url = "https://a.org/x", .validator = "\"1\"", .total = 7};
  EXPECT_EQ(parse_part_info(to_text(info)), info);
  EXPECT_EQ(parse_part_info(to_text(PartInfo{})), PartInfo{});
  EXPECT_EQ(to_text(PartInfo{.url = "a\nb"}), "");
  const auto text = to_text(info);
  for (std::size_t cut = 0; cut + 1 < text.size(); ++cut)
    EXPECT_EQ(parse_part_info(text.substr(0, cut)), PartInfo{}) << cut;
}

TEST(DownloadUrl, IsNvidiasOrThatOfAMirror) {
  EXPECT_EQ(*download_url("460.56", "x86_64", ""),
            "https://us.download.nvidia.com/XFree86/Linux-x86_64/460.56/"
            "NVIDIA-Linux-x86_64-460.56.run");
  EXPECT_EQ(*download_url("580.159.04", "x86_64", "https://mirror.example.org/nvidia/"),
            "https://mirror.example.org/nvidia/XFree86/Linux-x86_64/580.159.04/"
            "NVIDIA-Linux-x86_64-580.159.04.run");
  EXPECT_EQ(download_url("580", "x86_64", "").error().code(), Errc::Invalid);
  EXPECT_EQ(download_url("../x", "x86_64", "").error().code(), Errc::Invalid);
  EXPECT_EQ(download_url("460.56", "riscv64", "").error().code(), Errc::Unsupported);
  EXPECT_FALSE(download_url("460.56", "x86_64", "file:///x").ok());
}

}  // namespace
}  // namespace gantry::driver_package
