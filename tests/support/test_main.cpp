// SPDX-License-Identifier: Apache-2.0
// The main() of an area's test program. --folder=probe runs only the tests whose source file is in
// a folder of that name, so that ctest shows one line per module although an area is linked once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <string_view>

namespace {

bool is_below(std::string_view file, std::string_view folder) {
  return file.find("/" + std::string(folder) + "/") != std::string_view::npos;
}

// The filter that names every test below the folder; "" if there is none.
std::string filter_for(std::string_view folder) {
  std::string filter;
  const auto& all = *testing::UnitTest::GetInstance();
  for (int i = 0; i < all.total_test_suite_count(); ++i) {
    const auto& suite = *all.GetTestSuite(i);
    for (int j = 0; j < suite.total_test_count(); ++j) {
      const auto& test = *suite.GetTestInfo(j);
      if (is_below(test.file(), folder))
        filter += std::string(suite.name()) + "." + test.name() + ":";
    }
  }
  return filter;
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleMock(&argc, argv);
  constexpr std::string_view kFolder = "--folder=";
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (!word.starts_with(kFolder)) continue;
    const auto filter = filter_for(word.substr(kFolder.size()));
    if (filter.empty()) {
      std::fprintf(stderr, "there are no tests in a folder %s\n", argv[i] + kFolder.size());
      return 1;
    }
    testing::GTEST_FLAG(filter) = filter;
  }
  return RUN_ALL_TESTS();
}
