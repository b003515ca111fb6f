// The accumulators' folder: owners, limits, damage, and what a new server finds.
#include "server/accumulators/accumulator_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <random>
#include <sstream>

#include "core/products/analyse.h"
#include "tests/support/temp_folder.h"

namespace spexd::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// A FIBERMAP with OBJTYPE and TARGETID of each fibre.
RawTable Fibermap(const std::vector<std::pair<std::string, int64_t>>& fibres) {
  RawTable table;
  table.rows = static_cast<int64_t>(fibres.size());
  table.row_bytes = 3 + sizeof(int64_t);
  for (const std::string card :
       {"XTENSION= 'BINTABLE'", "BITPIX  =                    8", "NAXIS   =                    2",
        "NAXIS1  =                   11", "NAXIS2  =                    4", "PCOUNT  =                    0",
        "GCOUNT  =                    1", "TFIELDS =                    2", "TTYPE1  = 'OBJTYPE '",
        "TFORM1  = '3A      '", "TTYPE2  = 'TARGETID'", "TFORM2  = '1K      '"}) {
    table.cards.push_back(card + std::string(80 - card.size(), ' '));
  }
  for (const auto& [type, id] : fibres) {
    table.data += type;
    for (int shift = 56; shift >= 0; shift -= 8) table.data += static_cast<char>(id >> shift & 255);
  }
  return table;
}

// A frame of two sky fibres and two targets.
class Exposure {
 public:
  explicit Exposure(int number, int64_t bins = 60, int64_t first_target = 10) {
    frame_.grid = {6000, 0.8, static_cast<int>(bins)};
    frame_.fibres = {0, 4};
    Spectra& spectra = frame_.spectra;
    spectra.flux.Assign({4, bins});
    spectra.ivar.Assign({4, bins}, 1.0f);
    spectra.mask.Assign({4, bins});
    spectra.chi2pix.Assign({4, bins});
    spectra.resolution.Assign({4, kResolutionDiagonals, bins});
    std::mt19937 random(static_cast<uint32_t>(number));
    std::normal_distribution<float> noise;
    for (int64_t i = 0; i < 4; ++i) {
      for (int64_t j = 0; j < bins; ++j) {
        spectra.flux(i, j) = 50 + noise(random);
        spectra.resolution(i, kResolutionHalfWidth, j) = 1;
      }
    }
    frame_.origin.image_cards = {"CAMERA  = 'r0      '"};
    frame_.origin.fibermap =
        Fibermap({{"SKY", 1}, {"SKY", 2}, {"TGT", first_target}, {"TGT", first_target + 1}});
    auto made = Analyse(frame_, {});
    EXPECT_TRUE(made.ok()) << made.status();
    sky_ = std::move(made->sky);
    EXPECT_TRUE(sky_.ok()) << sky_.status();
    job_id_ = "job " + std::to_string(number);
  }
  FrameToAdd Add() const { return {frame_, "exposure.fits", DigestOf(frame_), job_id_, none_, sky_, 1}; }

 private:
  const std::optional<Fiberflat> none_;
  Frame frame_;
  absl::StatusOr<Sky> sky_ = absl::InternalError("");
  std::string job_id_;
};

Identity Someone(const std::string& name) { return {name, {true, true, false}}; }

class AccumulatorStoreTest : public ::testing::Test {
 protected:
  AccumulatorStoreTest() { Open(); }
  void Open() {
    store_.reset();
    store_ = std::make_unique<AccumulatorStore>(folder_.path(), limits_, &logger_);
    const absl::Status opened = store_->Open();
    ASSERT_TRUE(opened.ok()) << opened;
  }
  absl::Status Create(const std::string& owner, const std::string& name,
                      AccumulatorKind kind = AccumulatorKind::kPca) {
    AccumulatorSpec spec;
    spec.owner = owner;
    spec.name = name;
    spec.kind = kind;
    return store_->Create(spec).status();
  }
  absl::StatusOr<bool> Add(const std::string& owner, const std::string& name, const Exposure& exposure) {
    return store_->Add(owner, name, exposure.Add(), {});
  }
  absl::StatusOr<std::string> Read(const std::string& owner, const std::string& name) {
    auto info = store_->Find(Someone(owner), "", name);
    if (!info.ok()) return info.status();
    auto accumulator = store_->Read(info->spec);
    if (!accumulator.ok()) return accumulator.status();
    return accumulator->File(0);
  }
  std::vector<std::string> Files(const std::string& part) const {
    std::vector<std::string> paths;
    for (const auto& entry : std::filesystem::directory_iterator(folder_ / "accumulators")) {
      if (entry.path().filename().string().find(part) != std::string::npos) paths.push_back(entry.path());
    }
    return paths;
  }
  void ExpectRefused(const absl::StatusOr<bool>& added, absl::StatusCode code, const std::string& words) {
    EXPECT_EQ(added.status().code(), code) << added.status();
    EXPECT_THAT(std::string(added.status().message()), HasSubstr(words));
  }

  TempFolder folder_;
  AccumulatorStore::Limits limits_{.count = 8,
                                   .count_of_owner = 3,
                                   .bytes = 4 << 20,
                                   .disk_bytes = 64 << 20,
                                   .disk_bytes_of_owner = 64 << 20};
  std::ostringstream log_;
  Logger logger_{LogLevel::kInfo, MakeStreamSink(&log_)};
  std::unique_ptr<AccumulatorStore> store_;
};

TEST_F(AccumulatorStoreTest, NamesAreAnOwnersOwnAndOthersSeeNone) {
  ASSERT_TRUE(Create("ann", "night").ok());
  ASSERT_TRUE(Create("bob", "night", AccumulatorKind::kCoadd).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(Create("ann", "night")));
  ASSERT_TRUE(Add("ann", "night", Exposure(1)).ok());
  EXPECT_THAT(store_->List("ann"), SizeIs(1));
  EXPECT_THAT(store_->List(""), SizeIs(2));
  EXPECT_EQ(store_->List("bob")[0].frames, 0);
  EXPECT_TRUE(absl::IsNotFound(store_->Find(Someone("carl"), "", "night").status()));
  EXPECT_TRUE(absl::IsNotFound(store_->Find(Someone("bob"), "ann", "night").status()));
  const Identity administrator{"root", Roles::All()};
  ASSERT_TRUE(store_->Find(administrator, "ann", "night").ok());
  EXPECT_EQ(store_->Find(administrator, "ann", "night")->frames, 1);
  ExpectRefused(Add("carl", "night", Exposure(1)), absl::StatusCode::kNotFound, "no accumulator \"night\"");
}

TEST_F(AccumulatorStoreTest, KeepsWhatWasAddedForTheNextServer) {
  ASSERT_TRUE(Create("ann", "pca").ok());
  ASSERT_TRUE(Create("ann", "sum", AccumulatorKind::kCoadd).ok());
  for (const int number : {1, 2}) {
    for (const char* name : {"pca", "sum"}) ASSERT_TRUE(Add("ann", name, Exposure(number)).ok());
  }
  const auto pca = Read("ann", "pca"), sum = Read("ann", "sum");
  ASSERT_TRUE(pca.ok() && sum.ok()) << pca.status() << sum.status();
  std::ofstream(folder_ / "accumulators/half.accumulator.tmp") << "what a killed server did not finish";
  Open();
  EXPECT_THAT(Files(".tmp"), IsEmpty());
  EXPECT_TRUE(*Read("ann", "pca") == *pca);
  EXPECT_TRUE(*Read("ann", "sum") == *sum);
  EXPECT_EQ(*Add("ann", "pca", Exposure(2)), true) << "a frame is known after a restart too";
  EXPECT_EQ(*Add("ann", "pca", Exposure(3)), false);
  EXPECT_EQ(store_->List("ann")[0].frames, 3);
}

TEST_F(AccumulatorStoreTest, CountsTheSameFrameAndTheSameJobOnce) {
  ASSERT_TRUE(Create("ann", "pca").ok());
  const Exposure exposure(1), other(2);
  EXPECT_EQ(*Add("ann", "pca", exposure), false);
  EXPECT_EQ(*Add("ann", "pca", exposure), true);
  FrameToAdd again = exposure.Add();
  again.job_id = "another job";
  EXPECT_EQ(*store_->Add("ann", "pca", again, {}), true) << "the same spectra";
  FrameToAdd on_another_device = other.Add();
  on_another_device.job_id = exposure.Add().job_id;
  EXPECT_EQ(*store_->Add("ann", "pca", on_another_device, {}), true) << "the job ran again";
  EXPECT_EQ(store_->List("ann")[0].frames, 1);
  EXPECT_EQ(store_->List("ann")[0].rows, 2);
}

TEST_F(AccumulatorStoreTest, HasLimitsOfNumberForAllAndForAnIdentity) {
  for (const char* name : {"a", "b", "c"}) ASSERT_TRUE(Create("ann", name).ok());
  EXPECT_THAT(std::string(Create("ann", "d").message()), HasSubstr("--max-accumulators-per-identity"));
  for (const char* name : {"a", "b", "c"}) ASSERT_TRUE(Create("bob", name).ok());
  for (const char* name : {"a", "b"}) ASSERT_TRUE(Create("carl", name).ok());
  const absl::Status full = Create("dora", "a");
  EXPECT_TRUE(absl::IsResourceExhausted(full));
  EXPECT_THAT(std::string(full.message()), HasSubstr("has 8 accumulators, the limit (--max-accumulators)"));
  ASSERT_TRUE(store_->Drop(store_->Find(Someone("bob"), "", "a")->spec).ok());
  EXPECT_TRUE(Create("dora", "a").ok());
  EXPECT_EQ(store_->stats().count, 8);
}

TEST_F(AccumulatorStoreTest, RefusesNamesThatDoNotFit) {
  for (const std::string name : {"", "-a", ".a", "a b", "a/b", "\xc3\xa9"})
    EXPECT_TRUE(absl::IsInvalidArgument(Create("ann", name))) << name;
  EXPECT_TRUE(absl::IsInvalidArgument(Create("ann", std::string(65, 'a'))));
  EXPECT_TRUE(Create("ann", std::string(64, 'a')).ok());
}

TEST_F(AccumulatorStoreTest, AFullOneRefusesAFrameAndStaysAsItIs) {
  limits_.bytes = 600000;
  Open();
  ASSERT_TRUE(Create("ann", "sum", AccumulatorKind::kCoadd).ok());
  ASSERT_TRUE(Add("ann", "sum", Exposure(1)).ok());
  int64_t targets = 10;
  absl::StatusOr<bool> added = true;
  while (added.ok() && targets < 1000) {
    targets += 2;
    added = Add("ann", "sum", Exposure(static_cast<int>(targets), 60, targets));
  }
  ExpectRefused(added, absl::StatusCode::kResourceExhausted, "--max-accumulator-bytes");
  const AccumulatorInfo info = store_->List("ann")[0];
  EXPECT_LE(info.bytes, limits_.bytes);
  EXPECT_EQ(info.rows, static_cast<double>(targets - 10));
  EXPECT_EQ(*Add("ann", "sum", Exposure(2)), false) << "of targets that it has, it takes more";
  ASSERT_TRUE(Create("ann", "pca").ok());
  ExpectRefused(Add("ann", "pca", Exposure(1, 400)), absl::StatusCode::kResourceExhausted, "is full");
}

TEST_F(AccumulatorStoreTest, BoundsTheDiskOfAllAndOfAnIdentity) {
  limits_.disk_bytes_of_owner = 500000;
  limits_.disk_bytes = 700000;
  Open();
  for (const char* owner : {"ann", "bob", "carl"}) {
    for (const char* name : {"a", "b"}) ASSERT_TRUE(Create(owner, name).ok());
  }
  ASSERT_TRUE(Add("ann", "a", Exposure(1, 150)).ok());
  ExpectRefused(Add("ann", "b", Exposure(1, 150)), absl::StatusCode::kResourceExhausted,
                "--accumulators-disk-bytes-per-identity");
  ASSERT_TRUE(Add("bob", "a", Exposure(1, 150)).ok());
  ExpectRefused(Add("carl", "a", Exposure(1, 200)), absl::StatusCode::kResourceExhausted,
                "(--accumulators-disk-bytes)");
  EXPECT_LE(store_->stats().disk_bytes, limits_.disk_bytes);
  EXPECT_EQ(store_->stats().refused, 2);
}

TEST_F(AccumulatorStoreTest, RefusesAFrameOnAnotherGridOrWithoutASky) {
  for (const AccumulatorKind kind : {AccumulatorKind::kPca, AccumulatorKind::kCoadd}) {
    const std::string name = kind == AccumulatorKind::kPca ? "pca" : "sum";
    ASSERT_TRUE(Create("ann", name, kind).ok());
    ASSERT_TRUE(Add("ann", name, Exposure(1)).ok());
    ExpectRefused(Add("ann", name, Exposure(2, 61)), absl::StatusCode::kInvalidArgument,
                  "exposure.fits: its grid is 6000 to 6048 Angstrom in 61 bins");
    const Exposure exposure(3);
    const absl::StatusOr<Sky> no_sky = absl::FailedPreconditionError("no sky fibre has data");
    const FrameToAdd whole = exposure.Add();
    const FrameToAdd frame = {whole.frame, whole.name, whole.digest, whole.job_id, whole.fiberflat,
                              no_sky,      1};
    ExpectRefused(store_->Add("ann", name, frame, {}), absl::StatusCode::kFailedPrecondition, "no sky fibre");
    EXPECT_EQ(store_->Find(Someone("ann"), "", name)->frames, 1);
  }
}

TEST_F(AccumulatorStoreTest, SetsDamagedFilesAsideAndKeepsTheOthers) {
  for (const AccumulatorKind kind : {AccumulatorKind::kPca, AccumulatorKind::kCoadd}) {
    const std::string name = kind == AccumulatorKind::kPca ? "pca" : "sum";
    ASSERT_TRUE(Create("ann", name, kind).ok());
    ASSERT_TRUE(Add("ann", name, Exposure(1)).ok());
    ASSERT_THAT(Files(".accumulator"), SizeIs(1));
    const std::string path = Files(".accumulator")[0], good = ReadBytes(path);
    store_.reset();
    constexpr uint32_t kSeed = 20250101;
    SCOPED_TRACE(kSeed);
    std::mt19937 random(kSeed);
    for (int k = 0; k < 60; ++k) {
      std::string bytes = good;
      const size_t at = random() % good.size();
      // The numbers at the head say how much follows: they are hit more often.
      const size_t place = k % 3 == 0 ? at : at % std::min<size_t>(good.size(), 400);
      if (k % 2 == 0) {
        bytes[place] = static_cast<char>(bytes[place] ^ (1 << random() % 8));
      } else {
        bytes.resize(place);
      }
      std::ofstream(path, std::ios::binary) << bytes;
      Open();
      EXPECT_THAT(store_->List(""), IsEmpty()) << "place " << place;
      EXPECT_EQ(store_->stats().damaged, 1);
      ASSERT_THAT(Files("damaged"), SizeIs(1));
      EXPECT_EQ(ReadBytes(Files("damaged")[0]), bytes);
      std::filesystem::remove(Files("damaged")[0]);
      store_.reset();
    }
    Open();
    EXPECT_TRUE(Create("ann", name, kind).ok());
    ASSERT_TRUE(store_->Drop(store_->Find(Someone("ann"), "", name)->spec).ok());
  }
}

TEST_F(AccumulatorStoreTest, NoticesDamageWhileItServes) {
  ASSERT_TRUE(Create("ann", "pca").ok());
  ASSERT_TRUE(Add("ann", "pca", Exposure(1)).ok());
  const std::string path = Files(".accumulator")[0];
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 1);
  ExpectRefused(Add("ann", "pca", Exposure(2)), absl::StatusCode::kDataLoss, path);
  EXPECT_TRUE(absl::IsNotFound(Read("ann", "pca").status()));
  EXPECT_TRUE(Create("ann", "pca").ok());
  EXPECT_TRUE(Add("ann", "pca", Exposure(2)).ok());
}

TEST_F(AccumulatorStoreTest, ADiskThatRefusesLeavesAllAsItWas) {
  ASSERT_TRUE(Create("ann", "pca").ok());
  ASSERT_TRUE(Add("ann", "pca", Exposure(1)).ok());
  const auto before = Read("ann", "pca");
  const std::string temporary = Files(".accumulator")[0] + ".tmp";
  std::filesystem::create_directory(temporary);  // in the way of the new file
  ExpectRefused(Add("ann", "pca", Exposure(2)), absl::StatusCode::kUnavailable, temporary);
  EXPECT_EQ(store_->List("ann")[0].frames, 1);
  EXPECT_TRUE(*Read("ann", "pca") == *before);
  std::filesystem::remove(temporary);
  EXPECT_EQ(*Add("ann", "pca", Exposure(2)), false);
}

TEST_F(AccumulatorStoreTest, BelongsToOneServer) {
  AccumulatorStore second(folder_.path(), limits_, &logger_);
  EXPECT_THAT(std::string(second.Open().message()), HasSubstr("another spexd keeps its jobs here"));
}

TEST(AccumulatorStore, WithoutAFolderItKeepsNone) {
  Logger log(LogLevel::kError, MakeStreamSink(&std::cerr));
  AccumulatorStore store("", {.count = 4}, &log);
  EXPECT_TRUE(store.Open().ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(store.CheckEnabled()));
  EXPECT_TRUE(absl::IsFailedPrecondition(store.Find(Someone("ann"), "", "a").status()));
}

}  // namespace
}  // namespace spexd::testing
