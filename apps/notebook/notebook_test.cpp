// SPDX-License-Identifier: Apache-2.0
#include "notebook/notebook.hpp"

#include "net/http/client.hpp"
#include "support/machine.hpp"
#include "support/paths.hpp"
#include "support/tree.hpp"

#include <arpa/inet.h>
#include <sys/socket.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>
#include <thread>

namespace gantry::workload {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;

std::vector<std::string> shell(const std::string& script) {
  return {"/bin/sh", "-c", script};
}

// A notebook with its own loop.
class Running {
 public:
  explicit Running(const NotebookOptions& options)
      : loop_(*sys::Loop::make()),
        notebook_(*loop_, options),
        server_(*http::Server::start(
            {.address = {"127.0.0.1", 0}, .workers = 0, .drain_time = 200ms}, notebook_.routes())),
        thread_([this] { EXPECT_TRUE(loop_->run().ok()); }) {}
  ~Running() {
    loop_->stop();
    thread_.join();
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  http::Response get(const std::string& target) const {
    http::Client client({.host = "127.0.0.1", .port = server_->port(), .secure = false});
    auto response = client.send({.target = target}, 60'000ms);
    EXPECT_TRUE(response.ok()) << target;
    return response.ok() ? *response : http::Response{.status = 0};
  }

  // Sends a request and closes the connection without waiting for the answer, as a bad proxy does.
  void ask_and_leave(std::string_view target) const {
    const sys::UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(server_->port());
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ASSERT_EQ(::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    const auto request = "GET " + std::string(target) + " HTTP/1.1\r\n\r\n";
    ASSERT_GT(::send(socket.get(), request.data(), request.size(), MSG_NOSIGNAL), 0);
    std::this_thread::sleep_for(50ms);
  }

  // Waits until the run with this number has ended and returns the status.
  std::string after_run(int number) const {
    const auto wanted = "\"number\": " + std::to_string(number);
    std::string status;
    for (int i = 0; i < 1000; ++i) {
      status = get("/status").body;
      if (status.find(wanted) != std::string::npos) return status;
      std::this_thread::sleep_for(20ms);
    }
    return status;
  }

 private:
  std::unique_ptr<sys::Loop> loop_;
  Notebook notebook_;
  std::unique_ptr<http::Server> server_;
  std::thread thread_;
};

NotebookOptions on(const std::string& library) {
  const auto program = test::built("bin/gantry-notebook");
  return {.run = {program, "--job", "add", "--library", library},
          .look = {program, "--job", "look", "--library", library}};
}

TEST(Notebook, ShowsTheGpusAndAddsOnOne) {
  const test::Machine machine("k80");
  const Running notebook(on(machine.cuda_library()));
  const auto page = notebook.get("/");
  EXPECT_EQ(page.status, 200);
  EXPECT_THAT(page.body, HasSubstr("GPU 0: Tesla K80, 11439 MiB, compute capability 3.7, "));
  const auto run = notebook.get("/run");
  EXPECT_EQ(run.status, 200);
  EXPECT_EQ(run.body,
            "[Vector addition of 50000 elements]\n"
            "Copy input data from the host memory to the CUDA device\n"
            "CUDA kernel launch with 196 blocks of 256 threads\n"
            "Copy output data from the CUDA device to the host memory\n"
            "Test PASSED\n"
            "Done\n");
  ASSERT_NE(http::find(run.headers, "X-Gantry-Run"), nullptr);
  EXPECT_THAT(notebook.get("/status").body,
              AllOf(HasSubstr(R"("state": "ok")"), HasSubstr(R"("result": "passed")"),
                    HasSubstr(R"("answered": true)"), HasSubstr("GPU and connection work")));
}

TEST(Notebook, AFaultOfTheGpuIsSaidWithItsCause) {
  const test::Machine machine("no-nodes");
  const Running notebook(on(machine.cuda_library()));
  const auto run = notebook.get("/run");
  EXPECT_EQ(run.status, 500);
  EXPECT_THAT(run.body, AllOf(HasSubstr("gantry-notebook: cuInit: no CUDA-capable device"),
                              HasSubstr("remedy: ")));
  EXPECT_THAT(notebook.get("/status").body,
              AllOf(HasSubstr(R"("state": "fault")"), HasSubstr("run 1 failed"),
                    HasSubstr(R"("verdict": "GPU fault)"), HasSubstr(" Remedy: gantry doctor")));
}

TEST(Notebook, LogsFaultsOnceAndWhenTheyEnd) {
  test::Tree tree;
  std::mutex mutex;
  std::string text;
  auto options = NotebookOptions{
      .run = shell("echo gantry-notebook: cuInit: none; echo '  cause: x'; exit 1"),
      .look = shell("test -e " + tree.path("gpu") + " || { echo gantry-notebook: gone; exit 1; }"),
      .log = Log(LogForm::Plain, 0, [&](std::string_view line) {
        const std::lock_guard lock(mutex);
        text += std::string(line) + "\n";
      })};
  const Running notebook(options);
  EXPECT_THAT(notebook.get("/status").body, HasSubstr(R"("state": "fault")"));
  notebook.get("/run");
  EXPECT_THAT(notebook.get("/status").body, HasSubstr(R"("state": "fault")"));
  tree.file("gpu");
  notebook.get("/run");  // lists the GPUs again
  for (int i = 0; i < 1000; ++i) {
    if (notebook.get("/status").body.find(R"("state": "ok")") != std::string::npos) break;
    std::this_thread::sleep_for(20ms);
  }
  const std::lock_guard lock(mutex);
  EXPECT_THAT(text, HasSubstr("gpu: no GPU can be used error=\"gantry-notebook: gone.\""));
  EXPECT_EQ(text.find("no GPU can be used"), text.rfind("no GPU can be used"));
  EXPECT_THAT(text, HasSubstr("run: GPU fault: the run failed run=1 "
                              "error=\"gantry-notebook: cuInit: none. Cause: x.\""));
  EXPECT_THAT(text, HasSubstr("gpu: the GPUs can be used again"));
}

TEST(Notebook, ADroppedConnectionLeavesTheResultBehind) {
  const Running notebook(
      {.run = shell("sleep 0.3; echo Test PASSED"), .look = shell("echo GPU 0")});
  notebook.ask_and_leave("/run");
  EXPECT_THAT(notebook.after_run(1),
              AllOf(HasSubstr(R"("answered": false)"),
                    HasSubstr("Dropped connection: run 1 passed"), HasSubstr("Test PASSED")));
}

TEST(Notebook, ServesOthersWhileOneRuns) {
  const Running notebook({.run = shell("sleep 0.5; echo done"), .look = shell("echo GPU 0")});
  std::thread asker([&] { EXPECT_EQ(notebook.get("/run").body, "done\n"); });
  std::string status;
  for (int i = 0; i < 200 && status.find("Run 1 is on the GPU.") == std::string::npos; ++i)
    status = notebook.get("/status").body;
  EXPECT_THAT(status, HasSubstr(R"("running": true)"));
  EXPECT_EQ(notebook.get("/run").body, "done\n") << "joins the run in progress";
  asker.join();
  EXPECT_THAT(notebook.get("/status").body, HasSubstr(R"("number": 1)"));
}

TEST(Notebook, ADriverThatHangsIsGivenUpAtTheDeadline) {
  const Running notebook({.run = shell("echo begun; exec sleep 1000"),
                          .look = shell("echo GPU 0"),
                          .deadline = 300ms});
  const auto run = notebook.get("/run");
  EXPECT_EQ(run.status, 504);
  EXPECT_EQ(run.body, "begun\nthe driver did not answer in time\n");
  EXPECT_THAT(notebook.get("/status").body, HasSubstr(R"("result": "hung")"));
}

TEST(Notebook, WhatCannotBeStartedFails) {
  const Running notebook({.run = {"/nonexistent"}, .look = {"/nonexistent"}});
  EXPECT_EQ(notebook.get("/run").status, 500);
  EXPECT_THAT(notebook.get("/").body, HasSubstr("/nonexistent: No such file"));
  EXPECT_EQ(notebook.get("/healthz").body, "ok\n");
}

}  // namespace
}  // namespace gantry::workload
