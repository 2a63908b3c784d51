// SPDX-License-Identifier: Apache-2.0
#include "trainer/trainer.hpp"

#include "trainer/gpu_model.hpp"
#include "trainer/reference.hpp"
#include "workload/context.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

namespace gantry::workload {
namespace {

constexpr const char* kName = "gantry-trainer";
constexpr std::size_t kPictures = 4000;
constexpr std::size_t kTests = 2000;
constexpr int kReportEvery = 10;
constexpr int kVerifiedSteps = 10;  // or all of them if there are fewer
// Guessing has an accuracy of 0.1. A model that is below this limit after so many steps has learnt
// nothing.
constexpr int kMinStepsToLearn = 100;
constexpr double kMinAccuracy = 0.5;

void say(std::FILE* out, const std::string& text) {
  const auto now = std::chrono::floor<std::chrono::microseconds>(std::chrono::system_clock::now());
  const auto second = std::chrono::floor<std::chrono::seconds>(now);
  fmt::print(out, "{:%Y-%m-%d %H:%M:%S}.{:06}: I {}] {}\n",
             fmt::gmtime(std::chrono::system_clock::to_time_t(second)), (now - second).count(),
             kName, text);
  std::fflush(out);
}

double gib(std::size_t bytes) {
  return static_cast<double>(bytes) / static_cast<double>(1ULL << 30U);
}

// Prints the device's properties in the order of TensorFlow's log.
Status describe(const Cuda& cuda, const Context& context, int ordinal, std::FILE* out) {
  char name[256] = "";
  char bus[32] = "";
  int major = 0;
  int minor = 0;
  int khz = 0;
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  const CUdevice device = context.device();
  CUDA_TRY(cuda, cuDeviceGetName, name, sizeof name, device);
  CUDA_TRY(cuda, cuDeviceGetPCIBusId, bus, sizeof bus, device);
  CUDA_TRY(cuda, cuDeviceGetAttribute, &major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
           device);
  CUDA_TRY(cuda, cuDeviceGetAttribute, &minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
           device);
  CUDA_TRY(cuda, cuMemGetInfo_v2, &free_bytes, &total_bytes);
  // TensorFlow uses this name for the multiprocessors' clock. Newer drivers may not report it.
  const bool clocked =
      cuda.cuDeviceGetAttribute(&khz, CU_DEVICE_ATTRIBUTE_CLOCK_RATE, device) == CUDA_SUCCESS;
  say(out, fmt::format("Found device {} with properties:", ordinal));
  fmt::print(out, "name: {} major: {} minor: {} memoryClockRate(GHz): {}\n", name, major, minor,
             clocked ? static_cast<double>(khz) / 1e6 : 0.0);
  fmt::print(out, "pciBusID: {}\ntotalMemory: {:.2f}GiB freeMemory: {:.2f}GiB\n", bus,
             gib(total_bytes), gib(free_bytes));
  say(out, fmt::format("Creating device (/device:GPU:{}) -> (device: {}, name: {}, pci bus id: {}, "
                       "compute capability: {}.{})",
                       ordinal, ordinal, name, bus, major, minor));
  return {};
}

class Training {
 public:
  Training(const TrainerOptions& how, std::FILE* out)
      : how_(how),
        batch_(static_cast<std::size_t>(how.batch_size)),
        rate_(static_cast<float>(how.learning_rate)),
        verified_(std::min(how.max_steps, kVerifiedSteps)),
        pictures_(draw_digits(kPictures, 1)),
        tests_(draw_digits(kTests, 2)),
        out_(out) {}

  Status run(const Cuda& cuda) {
    GANTRY_TRY(const GpuModel model, GpuModel::make(cuda));
    GANTRY_TRY(const GpuDigits pictures, model.upload(pictures_));
    GANTRY_TRY(const GpuDigits tests, model.upload(tests_));
    double accuracy = 0;
    for (int step = 0; step < how_.max_steps; ++step) {
      if (step % kReportEvery == 0) {
        GANTRY_TRY(accuracy, report(model, tests, step));
      }
      GANTRY_CHECK(model.step(pictures, first_of(step), batch_, rate_));
      if (how_.verify && step + 1 == verified_) GANTRY_CHECK(verify(model));
    }
    GANTRY_TRY(accuracy, report(model, tests, how_.max_steps));
    if (how_.max_steps < kMinStepsToLearn || accuracy >= kMinAccuracy) return {};
    return Error(
        Errc::Corrupt,
        fmt::format("nothing was learnt: after {} steps the accuracy is {}\n"
                    "  cause: the GPU or its memory gives wrong results, the learning rate {} is "
                    "unsuitable, or {} is not the driver's own library\n"
                    "  remedy: gantry-trainer --verify; nvidia-smi -q -d ECC; dmesg | grep -i xid",
                    how_.max_steps, accuracy, how_.learning_rate, cuda.library));
  }

 private:
  std::size_t first_of(int step) const {
    return static_cast<std::size_t>(step) % (kPictures / batch_) * batch_;
  }

  Result<double> report(const GpuModel& model, const GpuDigits& tests, int step) const {
    GANTRY_TRY(const std::vector<std::uint32_t> found, model.predict(tests));
    std::size_t right = 0;
    for (std::size_t i = 0; i < found.size(); ++i) right += found[i] == tests_.labels[i] ? 1 : 0;
    const double accuracy = static_cast<double>(right) / static_cast<double>(found.size());
    fmt::print(out_, "Accuracy at step {}: {:#}\n", step, accuracy);
    std::fflush(out_);
    return accuracy;
  }

  // The same steps on the CPU.
  Status verify(const GpuModel& model) const {
    GANTRY_TRY(const std::vector<float> weights, model.weights());
    std::vector<float> wanted(weights.size());
    const std::span<const float> pixels = pictures_.pixels;
    const std::span<const std::uint32_t> labels = pictures_.labels;
    for (int step = 0; step < verified_; ++step) {
      reference_step(pixels.subspan(first_of(step) * kPixels, batch_ * kPixels),
                     labels.subspan(first_of(step), batch_), rate_, wanted);
    }
    float worst = 0;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const float apart = std::fabs(weights[i] - wanted[i]);
      if (!(apart <= 1e-4F)) {  // also if it is NaN
        return Error(Errc::Corrupt,
                     fmt::format("weight {} after {} steps is {}, but {} on the CPU\n"
                                 "  cause: the GPU or its memory gives wrong results\n"
                                 "  remedy: nvidia-smi -q -d ECC; dmesg | grep -i xid",
                                 i, verified_, weights[i], wanted[i]));
      }
      worst = std::max(worst, apart);
    }
    say(out_, fmt::format(
                  "{} weights after {} steps match the CPU's, with a difference of at most {:.1e}",
                  weights.size(), verified_, worst));
    return {};
  }

  TrainerOptions how_;
  std::size_t batch_;
  float rate_;
  int verified_;
  Digits pictures_;
  Digits tests_;
  std::FILE* out_;
};

Status run(const Options& options, const TrainerOptions& how, std::FILE* out) {
  GANTRY_TRY(const Cuda cuda, open_cuda(options.library));
  CUDA_TRY(cuda, cuInit, 0);
  Context context(cuda);
  GANTRY_CHECK(context.create(options.device));
  GANTRY_CHECK(describe(cuda, context, options.device, out));
  Training training(how, out);
  GANTRY_CHECK(training.run(cuda));
  std::this_thread::sleep_for(std::chrono::seconds(options.hold_seconds));
  return {};
}

}  // namespace

int train(const Options& options, const TrainerOptions& how, std::FILE* out, std::FILE* err) {
  const Status status = run(options, how, out);
  std::fflush(out);
  if (status.ok()) return 0;
  print_error(err, options.called.empty() ? kName : options.called, status.error());
  return 1;
}

}  // namespace gantry::workload
