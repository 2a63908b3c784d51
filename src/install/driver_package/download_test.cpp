// SPDX-License-Identifier: Apache-2.0
#include "install/driver_package/download_for_test.hpp"
#include "install/driver_package/part_file_internal.hpp"
#include "net/http/server.hpp"

namespace gantry::driver_package {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

TEST_F(DownloadTest, BringsTheFileAndLeavesNothingElse) {
  const auto body = some_file(3'000'000);
  FileServer server(ServedFile{.body = body});
  const auto got = get(request(server, body));
  ASSERT_TRUE(got.ok()) << got.error().text();
  EXPECT_EQ(got->path, fmt::format("/var/lib/gantry/downloads/{}", kName));
  EXPECT_EQ(got->bytes, body.size());
  EXPECT_EQ(got->sha256, digest_of(body));
  EXPECT_EQ(got->resumed_from, 0U);
  EXPECT_EQ(content(), body);
  EXPECT_THAT(names(), ElementsAre(std::string(kName)));
  EXPECT_EQ(notes_.last, std::pair(body.size(), body.size()));
}

TEST_F(DownloadTest, SendsNoRequestForAFileThatIsThere) {
  const auto body = some_file(1000);
  FileServer server(ServedFile{.body = body});
  ASSERT_TRUE(get(request(server, body)).ok());
  const auto again = get(request(server, body));
  ASSERT_TRUE(again.ok()) << again.error().text();
  EXPECT_TRUE(again->was_there);
  EXPECT_EQ(again->bytes, 1000U);
  EXPECT_EQ(server.requests().size(), 1U);
  EXPECT_THAT(names(), ElementsAre(std::string(kName)));
}

TEST_F(DownloadTest, ReplacesAFileThatIsAnotherOne) {
  const auto body = some_file(1000);
  tree_.file(fmt::format("var/lib/gantry/downloads/{}", kName), "of last year");
  FileServer server(ServedFile{.body = body});
  const auto got = get(request(server, body));
  ASSERT_TRUE(got.ok()) << got.error().text();
  EXPECT_FALSE(got->was_there);
  EXPECT_EQ(content(), body);
}

// The head of the answer included.
TEST_F(DownloadTest, ContinuesAfterACutAtAnyByte) {
  const auto body = some_file(120);
  const ServedFile file{.body = body};
  const auto whole = serve("", file);
  const auto head = whole.size() - body.size();
  for (std::size_t cut = 0; cut < whole.size(); ++cut) {
    test::Tree tree;
    FileServer server([&](std::string_view request, std::size_t number) {
      const auto text = serve(request, file);
      return Answer{number == 0 ? text.substr(0, cut) : text};
    });
    const auto got = download(tree.host(), request(server, body), notes_);
    ASSERT_TRUE(got.ok()) << "cut at " << cut << ": " << got.error().text();
    EXPECT_EQ(got->sha256, digest_of(body));
    const auto asked = server.requests();
    ASSERT_EQ(asked.size(), 2U) << cut;
    EXPECT_EQ(header_of(asked[1], "Range"), cut > head ? fmt::format("bytes={}-", cut - head) : "")
        << cut;
  }
}

TEST_F(DownloadTest, TheNextCallContinuesWhereTheLastOneDied) {
  const auto body = some_file(5'000);
  const ServedFile file{.body = body};
  FileServer server([&](std::string_view request, std::size_t number) {
    const auto text = serve(request, file);
    return Answer{number < 3 ? text.substr(0, number == 0 ? 1500 : 0) : text};
  });
  const auto first = get(request(server, body));
  ASSERT_FALSE(first.ok());
  EXPECT_THAT(first.error().text(), HasSubstr("downloading NVIDIA-Linux-x86_64-580.159.04.run"));
  EXPECT_EQ(content(), "(not there)");
  const auto kept = content(".part").size();
  EXPECT_GT(kept, 1000U);
  const auto second = get(request(server, body));
  ASSERT_TRUE(second.ok()) << second.error().text();
  EXPECT_EQ(second->resumed_from, kept);
  EXPECT_EQ(content(), body);
  EXPECT_EQ(header_of(server.requests().back(), "Range"), fmt::format("bytes={}-", kept));
  EXPECT_EQ(header_of(server.requests().back(), "If-Range"), "\"1\"");
}

TEST_F(DownloadTest, BeginsAgainIfTheServerHasAnotherFileNow) {
  const auto old_body = some_file(5'000, 'o');
  const auto body = some_file(4'000, 'n');
  FileServer server([&](std::string_view request, std::size_t number) {
    if (number == 0) return Answer{serve(request, {.body = old_body}).substr(0, 2000)};
    return Answer{serve(request, {.body = body, .validator = "ETag: \"2\""})};
  });
  const auto got = get(request(server, body));
  ASSERT_TRUE(got.ok()) << got.error().text();
  EXPECT_EQ(content(), body);
  EXPECT_THAT(notes_.notes, Contains(HasSubstr("another file now")));
}

// A server without validators cannot tell; the digest can.
TEST_F(DownloadTest, BeginsAgainOnceIfThePartsAreOfTwoFiles) {
  const auto old_body = some_file(4'000, 'o');
  const auto body = some_file(4'000, 'n');
  tree_.file(fmt::format("var/lib/gantry/downloads/{}.part", kName), old_body.substr(0, 1000));
  FileServer server(ServedFile{.body = body, .validator = ""});
  const auto wanted = request(server, body);
  tree_.file(fmt::format("var/lib/gantry/downloads/{}.part.info", kName),
             to_text(PartInfo{.url = wanted.package.url, .total = 4000}));
  const auto got = get(wanted);
  ASSERT_TRUE(got.ok()) << got.error().text();
  EXPECT_EQ(got->resumed_from, 0U);
  EXPECT_EQ(content(), body);
  EXPECT_EQ(server.requests().size(), 2U);
}

TEST_F(DownloadTest, AWholePartThatWasNotRenamedIsNotAskedForAgain) {
  const auto body = some_file(1000);
  FileServer server(ServedFile{.body = body});
  const auto wanted = request(server, body);
  tree_.file(fmt::format("var/lib/gantry/downloads/{}.part", kName), body);
  tree_.file(fmt::format("var/lib/gantry/downloads/{}.part.info", kName),
             to_text(PartInfo{.url = wanted.package.url, .validator = "\"1\"", .total = 1000}));
  const auto got = get(wanted);
  ASSERT_TRUE(got.ok()) << got.error().text();
  EXPECT_EQ(got->resumed_from, 1000U);
  EXPECT_TRUE(server.requests().empty());
  EXPECT_THAT(names(), ElementsAre(std::string(kName)));
}

TEST_F(DownloadTest, APartOfAnotherUrlIsNotUsed) {
  const auto body = some_file(1000);
  FileServer server(ServedFile{.body = body});
  tree_.file(fmt::format("var/lib/gantry/downloads/{}.part", kName), "of another server");
  tree_.file(fmt::format("var/lib/gantry/downloads/{}.part.info", kName),
             to_text(PartInfo{.url = "http://127.0.0.1:1/x", .validator = "\"1\"", .total = 1000}));
  const auto got = get(request(server, body));
  ASSERT_TRUE(got.ok()) << got.error().text();
  EXPECT_EQ(header_of(server.requests().at(0), "Range"), "");
}

TEST_F(DownloadTest, AllCountsOfTheInProcessServerArrive) {
  const auto body = some_file(10'000'000);
  http::ServerOptions options;
  options.address = {.host = "127.0.0.1", .port = 0};
  auto server = http::Server::start(
      options,
      {{"GET", "/driver.run", [&](const http::Request&) { return http::Response{.body = body}; }}});
  ASSERT_TRUE(server.ok()) << server.error().text();
  const auto got =
      get({.package = {.url = fmt::format("http://127.0.0.1:{}/driver.run", (*server)->port()),
                       .sha256 = digest_of(body)},
           .directory = "/downloads"});
  ASSERT_TRUE(got.ok()) << got.error().text();
  EXPECT_EQ(got->bytes, body.size());
}

// Two URLs may end in the same name. Nobody listens at the port: a file that counts needs no
// server.
TEST_F(DownloadTest, WithoutADigestAFileCountsForItsOwnUrlOnly) {
  const auto own = fmt::format("https://127.0.0.1:1/driver/{}", kName);
  const auto file = fmt::format("var/lib/gantry/downloads/{}", kName);
  const DownloadRequest wanted{.package = {.version = "580.159.04", .url = own},
                               .directory = "/var/lib/gantry/downloads",
                               .trust_without_digest = true,
                               .stall = 2s,
                               .pause = 0ms,
                               .tries = 1};
  tree_.file(file, "abcd");
  EXPECT_FALSE(get(wanted).ok()) << "nothing says where it came from";
  tree_.file(file + ".source", fmt::format("{}\nhttps://b.org/{}\n", digest_of("abcd"), kName));
  EXPECT_FALSE(get(wanted).ok()) << "it came from another URL";
  tree_.file(file + ".source", fmt::format("{}\n{}\n", digest_of("old bytes"), own));
  EXPECT_FALSE(get(wanted).ok()) << "it was replaced meanwhile";
  tree_.file(file + ".source", fmt::format("{}\n{}\n", digest_of("abcd"), own));
  const auto got = get(wanted);
  ASSERT_TRUE(got.ok()) << got.error().text();
  EXPECT_TRUE(got->was_there);
}

// As download() does without a digest, which needs https.
TEST_F(DownloadTest, AFileKnowsItsUrlByItsDigest) {
  const std::string path = fmt::format("/var/lib/gantry/downloads/{}", kName);
  auto part = PartFile::open(tree_.host(), "/var/lib/gantry/downloads", std::string(kName));
  ASSERT_TRUE(part.ok()) << part.error().text();
  ASSERT_TRUE(part->set_info({.url = "https://a.org/x.run", .validator = "", .total = 4}).ok());
  ASSERT_TRUE(part->append("abcd").ok());
  ASSERT_TRUE(part->note_source(digest_of("abcd")).ok());
  ASSERT_TRUE(part->publish().ok());
  const auto host = tree_.host();
  EXPECT_TRUE(is_from(host, path, "https://a.org/x.run", digest_of("abcd")));
  EXPECT_FALSE(is_from(host, path, "https://b.org/x.run", digest_of("abcd")));
  EXPECT_FALSE(is_from(host, path, "https://a.org/x.run", digest_of("other bytes")));
  EXPECT_THAT(names(), ElementsAre(std::string(kName), fmt::format("{}.source", kName)));
}

}  // namespace
}  // namespace gantry::driver_package
