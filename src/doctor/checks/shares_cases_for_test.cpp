// SPDX-License-Identifier: Apache-2.0
#include "doctor/checks/machine_for_test.hpp"

namespace gantry::doctor {
namespace {

using enum Verdict;

SharesView& shares(TestMachine& p) {
  if (!p.sources.shares) p.sources.shares = SharesView{.names = {"blue", "train"}};
  return *p.sources.shares;
}

void found(TestMachine& p, std::int64_t seconds_ago) {
  shares(p).findings = {{.share = "blue",
                         .text = "share blue holds 12.0 GiB, its limit is 10.0 GiB",
                         .seconds_ago = seconds_ago}};
}

void library(TestMachine& p, bool there, const char* trouble) {
  shares(p).libraries = {
      {.path = "/usr/lib/gantry/libgantry-fence.so", .there = there, .trouble = trouble}};
}

void copies(TestMachine& p, int versions) {
  for (int i = 0; i < versions; ++i) {
    const auto place = "var/lib/gantry/fence/" + std::string(16, static_cast<char>('a' + i));
    p.tree.file(place + "1/libgantry-fence.so", std::string(2048, 'x'));
    p.tree.file(place + "2/libgantry-fence-nvml.so", std::string(1024, 'x'));
  }
}

}  // namespace

std::vector<Case> share_cases() {
  return {
      {"shares.keeper", Skip, unchanged},
      {"shares.keeper", Skip, [](TestMachine& p) { shares(p).names.clear(); }},
      {"shares.keeper", Skip, [](TestMachine& p) { shares(p).only_root = true; }},
      {"shares.keeper", Ok, [](TestMachine& p) { shares(p); }},
      {"shares.keeper", Fail,
       [](TestMachine& p) { shares(p).no_answer_reason = "no keeper runs"; }},
      {"shares.keeper", Fail,
       [](TestMachine& p) {
         shares(p).no_answer_reason = "the share daemon (pid 7) is stopped";
         shares(p).hung_pid = 7;
       }},
      {"shares.keeper", Warn,
       [](TestMachine& p) {
         shares(p).unreadable = {"/run/gantry/shares/red/share.json: a record has a share"};
       }},
      {"shares.over", Skip, [](TestMachine& p) { shares(p).no_answer_reason = "no keeper runs"; }},
      {"shares.over", Ok, [](TestMachine& p) { shares(p); }},
      {"shares.over", Warn, [](TestMachine& p) { found(p, 4); }},
      {"shares.over", Ok, [](TestMachine& p) { found(p, 86'400); }},
      {"shares.libraries", Skip, [](TestMachine& p) { shares(p); }},
      {"shares.libraries", Ok, [](TestMachine& p) { library(p, true, ""); }},
      {"shares.libraries", Fail, [](TestMachine& p) { library(p, true, "speaks abi 1, not 2"); }},
      {"shares.libraries", Fail, [](TestMachine& p) { library(p, false, "(absent)"); }},
      {"shares.libraries", Skip,
       [](TestMachine& p) {
         library(p, false, "(absent)");
         shares(p).names.clear();
       }},
      {"shares.beside", Skip,
       [](TestMachine& p) { shares(p).no_answer_reason = "no keeper runs"; }},
      {"shares.beside", Ok, [](TestMachine& p) { shares(p); }},
      {"shares.beside", Warn,
       [](TestMachine& p) {
         shares(p).beside = {
             {.gpu = "GPU-1", .pid = 815, .command = "python3", .memory = "1.0 GiB"}};
       }},
      {"shares.copies", Skip, unchanged},
      {"shares.copies", Ok, [](TestMachine& p) { copies(p, 2); }},
      {"shares.copies", Info, [](TestMachine& p) { copies(p, 3); }},
  };
}

}  // namespace gantry::doctor
