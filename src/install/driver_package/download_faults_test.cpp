// SPDX-License-Identifier: Apache-2.0
#include "base/sys/stop_signal.hpp"
#include "install/driver_package/download_for_test.hpp"
#include "install/driver_package/part_file_internal.hpp"

#include <sys/stat.h>

#include <thread>
#include <tuple>

namespace gantry::driver_package {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST_F(DownloadTest, AServerWithoutRangesSendsEverythingAgain) {
  const auto body = some_file(3'000);
  FileServer server([&](std::string_view request, std::size_t number) {
    const auto text = serve(request, {.body = body, .validator = "", .ranges = false});
    return Answer{number == 0 ? text.substr(0, 1000) : text};
  });
  const auto got = get(request(server, body));
  ASSERT_TRUE(got.ok()) << got.error().text();
  EXPECT_EQ(content(), body);
}

TEST_F(DownloadTest, AServerThatAlwaysBreaksOffIsNotAskedForEver) {
  const auto body = some_file(3'000);
  FileServer server([&](std::string_view request, std::size_t) {
    return Answer{serve(request, {.body = body}).substr(0, 200)};
  });
  const auto got = get(request(server, body));
  ASSERT_FALSE(got.ok());
  EXPECT_EQ(got.error().code(), Errc::Corrupt);
  EXPECT_EQ(server.requests().size(), 3U);
}

TEST_F(DownloadTest, AServerThatSendsAByteNowAndThenIsGivenUp) {
  const auto body = some_file(3'000);
  FileServer server([&](std::string_view request, std::size_t) {
    return Answer{.text = serve(request, {.body = body}), .drip = 1ms};
  });
  auto wanted = request(server, body);
  wanted.slowest = 50ms;
  wanted.tries = 1;
  const auto got = get(wanted);
  ASSERT_FALSE(got.ok());
  EXPECT_EQ(got.error().code(), Errc::Timeout);
  EXPECT_THAT(got.error().text(), HasSubstr("less than 64.0 KiB in 1 s"));
}

TEST_F(DownloadTest, AnotherDigestIsRefusedAndTheFileRemoved) {
  const auto body = some_file(1000);
  FileServer server(ServedFile{.body = body});
  auto wanted = request(server, body);
  wanted.package.sha256 = digest_of("the driver that was tested");
  const auto got = get(wanted);
  ASSERT_FALSE(got.ok());
  EXPECT_EQ(got.error().code(), Errc::Denied);
  EXPECT_THAT(got.error().text(), HasSubstr(digest_of(body)));
  EXPECT_THAT(got.error().text(), HasSubstr(wanted.package.sha256));
  EXPECT_THAT(names(), ElementsAre());
}

TEST_F(DownloadTest, AFileThatIsTooLargeIsRefusedBeforeItArrives) {
  const auto body = some_file(100'000);
  FileServer server(ServedFile{.body = body});
  auto wanted = request(server, body);
  wanted.limit_bytes = 50'000;
  const auto got = get(wanted);
  ASSERT_FALSE(got.ok());
  EXPECT_EQ(got.error().code(), Errc::TooLarge);
  EXPECT_EQ(server.requests().size(), 1U);
  wanted.limit_bytes = 1 << 20;
  wanted.package.bytes = 99'999;
  const auto other = get(wanted);
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.error().code(), Errc::Denied);
  EXPECT_THAT(other.error().text(), HasSubstr("100000 bytes, but 99999 bytes were asked for"));
}

TEST_F(DownloadTest, AnEndlessFileIsCut) {
  FileServer server([](std::string_view, std::size_t) {
    return Answer{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffff\r\n" +
                      std::string(0xffff, 'x') + "\r\nffff\r\n" + std::string(0xffff, 'x') + "\r\n",
                  true};
  });
  auto wanted = request(server, "");
  wanted.limit_bytes = 100'000;
  const auto got = get(wanted);
  ASSERT_FALSE(got.ok());
  EXPECT_EQ(got.error().code(), Errc::TooLarge);
  EXPECT_LE(content(".part").size(), 100'000U);
}

TEST_F(DownloadTest, AServerThatFallsSilentIsAskedAgain) {
  const auto body = some_file(3'000);
  FileServer server([&](std::string_view request, std::size_t number) {
    const auto text = serve(request, {.body = body});
    return number == 0 ? Answer{text.substr(0, 1000), true} : Answer{text};
  });
  auto wanted = request(server, body);
  wanted.stall = 100ms;
  const auto got = get(wanted);
  ASSERT_TRUE(got.ok()) << got.error().text();
  EXPECT_EQ(content(), body);
}

TEST_F(DownloadTest, AServerThatStaysSilentIsATimeout) {
  FileServer server([](std::string_view, std::size_t) { return Answer{"", true}; });
  auto wanted = request(server, "x");
  wanted.stall = 20ms;
  const auto got = get(wanted);
  ASSERT_FALSE(got.ok());
  EXPECT_EQ(got.error().code(), Errc::Timeout);
  EXPECT_EQ(server.requests().size(), 3U);
}

TEST_F(DownloadTest, IsStoppedInTheMiddleAndKeepsWhatItHas) {
  const auto body = some_file(3'000);
  FileServer server([&](std::string_view request, std::size_t) {
    return Answer{serve(request, {.body = body}).substr(0, 1000), true};
  });
  sys::StopSignal stop;
  auto wanted = request(server, body);
  wanted.stall = 1h;
  wanted.cancel = stop.fd();
  std::thread stopper([&] {
    while (content(".part").size() < 500) std::this_thread::sleep_for(1ms);
    stop.raise();
  });
  const auto got = get(wanted);
  stopper.join();
  ASSERT_FALSE(got.ok());
  EXPECT_EQ(got.error().code(), Errc::Timeout);
  EXPECT_THAT(got.error().text(), HasSubstr("stopped"));
  EXPECT_GT(content(".part").size(), 500U);
}

TEST_F(DownloadTest, TwoProcessesDoNotWriteOneFile) {
  const auto body = some_file(1000);
  FileServer server(ServedFile{.body = body});
  const auto other = PartFile::open(tree_.host(), "/var/lib/gantry/downloads", std::string(kName));
  ASSERT_TRUE(other.ok()) << other.error().text();
  const auto got = get(request(server, body));
  ASSERT_FALSE(got.ok());
  EXPECT_EQ(got.error().code(), Errc::Busy);
  EXPECT_TRUE(server.requests().empty());
}

TEST_F(DownloadTest, APartOtherThanTheWantedOneIsRefused) {
  const auto body = some_file(1000);
  FileServer server([&](std::string_view request, std::size_t number) {
    const auto text = serve(request, {.body = body});
    if (number == 0) return Answer{text.substr(0, 400)};
    if (number == 1)
      return Answer{
          "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-3/1000\r\nContent-Length: 4\r\n"
          "\r\nabcd"};
    return Answer{text};
  });
  const auto got = get(request(server, body));
  ASSERT_TRUE(got.ok()) << got.error().text();
  EXPECT_EQ(content(), body);
}

TEST_F(DownloadTest, APartThatIsLongerThanTheFileIsDropped) {
  const auto body = some_file(1000);
  FileServer server(ServedFile{.body = body});
  const auto wanted = request(server, body);
  tree_.file(fmt::format("var/lib/gantry/downloads/{}.part", kName), some_file(2000, 'z'));
  tree_.file(fmt::format("var/lib/gantry/downloads/{}.part.info", kName),
             to_text(PartInfo{.url = wanted.package.url, .validator = "\"1\""}));
  const auto got = get(wanted);
  ASSERT_TRUE(got.ok()) << got.error().text();
  EXPECT_EQ(content(), body);
}

TEST_F(DownloadTest, FollowsRedirections) {
  const auto body = some_file(1000);
  FileServer server([&](std::string_view request, std::size_t number) {
    if (number == 0)
      return Answer{
          "HTTP/1.1 302 Found\r\nLocation: /elsewhere?file=1\r\nContent-Length: 0\r\n\r\n"};
    return Answer{serve(request, {.body = body})};
  });
  const auto got = get(request(server, body));
  ASSERT_TRUE(got.ok()) << got.error().text();
  EXPECT_THAT(server.requests().at(1), HasSubstr("GET /elsewhere?file=1 HTTP/1.1"));
}

TEST_F(DownloadTest, RedirectionsWithoutEndAreAnError) {
  FileServer server([](std::string_view, std::size_t) {
    return Answer{"HTTP/1.1 302 Found\r\nLocation: /again\r\nContent-Length: 0\r\n\r\n"};
  });
  const auto got = get(request(server, ""));
  ASSERT_FALSE(got.ok());
  EXPECT_EQ(got.error().code(), Errc::Invalid);
  EXPECT_EQ(server.requests().size(), 6U);
}

TEST_F(DownloadTest, SaysWhatAServerRefuses) {
  const auto answer = [&](std::string_view text) {
    FileServer server([&](std::string_view, std::size_t) { return Answer{std::string(text)}; });
    const auto got = get(request(server, ""));
    return got.ok() ? std::pair(Errc::Internal, std::string())
                    : std::pair(got.error().code(), got.error().text());
  };
  auto [code, text] = answer("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
  EXPECT_EQ(code, Errc::NotFound);
  EXPECT_THAT(text, HasSubstr("check the version"));
  std::tie(code, text) = answer("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n");
  EXPECT_EQ(code, Errc::Denied);
  std::tie(code, text) = answer("HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n");
  EXPECT_EQ(code, Errc::Busy);
  std::tie(code, text) =
      answer("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 1\r\n\r\n<");
  EXPECT_EQ(code, Errc::Invalid);
  EXPECT_THAT(text, HasSubstr("web page"));
  std::tie(code, text) =
      answer("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 1\r\n\r\n<");
  EXPECT_EQ(code, Errc::Unsupported);
  std::tie(code, text) = answer("SSH-2.0-OpenSSH\r\n\r\n");
  EXPECT_EQ(code, Errc::Corrupt);
}

TEST_F(DownloadTest, DoesNotUseADirectoryThatOthersCanWrite) {
  FileServer server(ServedFile{.body = "x"});
  tree_.directory("var/lib/gantry/downloads");
  ASSERT_EQ(::chmod(tree_.path("var/lib/gantry/downloads").c_str(), 0777), 0);
  const auto got = get(request(server, "x"));
  ASSERT_FALSE(got.ok());
  EXPECT_EQ(got.error().code(), Errc::Denied);
}

TEST_F(DownloadTest, DoesNotWriteThroughALink) {
  FileServer server(ServedFile{.body = "x"});
  tree_.file("etc/passwd", "root");
  tree_.directory("var/lib/gantry/downloads")
      .link(fmt::format("var/lib/gantry/downloads/{}.part", kName), "/etc/passwd");
  EXPECT_FALSE(get(request(server, "x")).ok());
  EXPECT_EQ(*tree_.host().read("/etc/passwd"), "root");
}

TEST_F(DownloadTest, RefusesNamesThatAreNone) {
  FileServer server(ServedFile{.body = "x"});
  for (const auto* path : {"", "/", "/.hidden", "/-rf", "/?x.run"}) {
    auto wanted = request(server, "x");
    wanted.package.url = server.url(path);
    EXPECT_FALSE(get(wanted).ok()) << path;
  }
  auto wanted = request(server, "x");
  wanted.file_name = "../x";
  EXPECT_FALSE(get(wanted).ok());
  EXPECT_TRUE(server.requests().empty());
}

}  // namespace
}  // namespace gantry::driver_package
