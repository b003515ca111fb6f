// Nothing in a file can crash the readers: truncated files and files with changed bytes are either read or
// refused.
#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "core/fits/readers.h"
#include "core/fits/writers.h"
#include "tests/fits/psf/psf_samples.h"
#include "tests/fits/samples.h"
#include "tests/support/temp_folder.h"

namespace spexd::testing {
namespace {

// Passes the bytes to every reader; returns how many read them without an error.
int ReadAll(std::string bytes) {
  SourceLimits limits;
  limits.max_bytes = 50 << 20;
  const absl::StatusOr<Source> source = Source::FromBytes("damaged.fits", std::move(bytes), limits);
  if (!source.ok()) {
    EXPECT_NE(source.status().message().find("damaged.fits"), absl::string_view::npos) << source.status();
    return 0;
  }
  const absl::Status results[] = {ReadPreproc(*source).status(),
                                  ReadPsf(*source).status(),
                                  ReadTableHdu(*source, "FIBERMAP").status(),
                                  ReadTruth(*source).status(),
                                  ReadFrame(*source).status(),
                                  ReadImageHdu(*source, "").status(),
                                  ReadImageHduDouble(*source, "IMAGE").status(),
                                  ReadCubeHduDouble(*source, "RESOLUTION").status()};
  int good = 0;
  for (const absl::Status& status : results) {
    good += status.ok();
    if (!status.ok()) {
      EXPECT_NE(status.message().find("damaged.fits"), absl::string_view::npos) << status;
    }
  }
  return good;
}

// Returns one valid file of each kind.
std::vector<std::string> ValidFiles() {
  const TempFolder folder;
  EXPECT_TRUE(WritePreproc(SamplePreproc(12, 40), (folder / "a.fits"), true).ok());
  EXPECT_TRUE(WritePreproc(SamplePreproc(12, 20), (folder / "b.fits"), false).ok());
  EXPECT_TRUE(WritePreproc(SamplePreproc(12, 20), (folder / "c.fits.gz"), false).ok());
  EXPECT_TRUE(WritePsf(SamplePsf(), (folder / "d.fits")).ok());
  EXPECT_TRUE(WriteFrame(SampleFrame(), (folder / "e.fits")).ok());
  EXPECT_TRUE(WriteTruth(SampleTruth(), (folder / "f.fits")).ok());
  std::vector<std::string> files;
  for (const std::string& name : folder.Entries()) files.push_back(ReadBytes(folder / name));
  for (NamedFile& file : PsfFiles()) files.push_back(std::move(file.bytes));
  return files;
}

TEST(ReadersUnderAttack, SurviveFilesCutAnywhere) {
  for (const std::string& file : ValidFiles()) {
    EXPECT_GT(ReadAll(file), 0);
    for (size_t size = 0; size < file.size(); size += 720) {
      ReadAll(file.substr(0, size));
      ReadAll(file.substr(0, size + 1));
    }
  }
}

TEST(ReadersUnderAttack, RefuseFilesThatLackTheirLastHdu) {
  const TempFolder folder;
  ASSERT_TRUE(WritePreproc(SamplePreproc(40, 40), (folder / "p.fits"), false).ok());
  const std::string bytes = ReadBytes(folder / "p.fits");
  // Cuts off the FIBERMAP's data block, then more and more.
  for (const size_t cut : {2880, 2881, 5760, 10000}) {
    const Source source = Source::FromBytes("p.fits", bytes.substr(0, bytes.size() - cut)).value();
    const absl::StatusOr<Preproc> preproc = ReadPreproc(source);
    if (preproc.ok()) {
      EXPECT_FALSE(preproc->fibermap.has_value()) << cut;
    }
  }
}

TEST(ReadersUnderAttack, SurviveAnyBytesChanged) {
  const unsigned seed = std::random_device()();
  std::printf("seed %u\n", seed);
  std::mt19937 random(seed);
  const std::vector<std::string> files = ValidFiles();
  for (int k = 0; k < 3000; ++k) {
    std::string file = files[random() % files.size()];
    // Half of the damage hits digits and letters in headers, where it changes meanings and is not always
    // refused.
    const int changes = 1 + static_cast<int>(random() % 4);
    for (int change = 0; change < changes; ++change) {
      size_t at = random() % file.size();
      if (random() % 2 == 0) {
        for (int tries = 0; tries < 200 && !(file[at] >= '0' && file[at] <= '9'); ++tries)
          at = random() % file.size();
        file[at] = static_cast<char>('0' + random() % 10);
      } else {
        file[at] = static_cast<char>(random());
      }
    }
    ReadAll(std::move(file));
    if (::testing::Test::HasFailure()) FAIL() << "seed " << seed << ", file " << k;
  }
}

TEST(ReadersUnderAttack, WorkFromManyThreadsOnOneSource) {
  const TempFolder folder;
  ASSERT_TRUE(WritePreproc(SamplePreproc(100, 40), (folder / "p.fits.gz"), true).ok());
  const Source source = Load(folder / "p.fits.gz");
  const Preproc expected = ReadPreproc(source).value();
  std::vector<int> failures(4);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int round = 0; round < 5; ++round) {
        const absl::StatusOr<Preproc> preproc = ReadPreproc(source, {1 + t});
        failures[t] += !preproc.ok() || !(preproc->image.pixels == expected.image.pixels) ||
                       source.content_hash().size() != 64;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, std::vector<int>(4));
}

}  // namespace
}  // namespace spexd::testing
