// Readers take their memory from the account of their source, and allocate nothing that the budget refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/fits/hdu/fits_file.h"
#include "core/fits/readers.h"
#include "core/fits/writers.h"
#include "tests/fits/counting_account.h"
#include "tests/fits/psf/psf_samples.h"
#include "tests/fits/samples.h"
#include "tests/support/temp_folder.h"

namespace spexd::testing {
namespace {

struct ReaderOfFile {
  std::string name;
  std::string bytes;
  std::function<absl::Status(const Source&)> read;
};

std::vector<ReaderOfFile> Readers() {
  const TempFolder folder;
  EXPECT_TRUE(WritePreproc(SamplePreproc(60, 400), folder / "rice.fits", true).ok());
  EXPECT_TRUE(WritePreproc(SamplePreproc(12, 20), folder / "plain.fits.gz", false).ok());
  EXPECT_TRUE(WritePsf(SamplePsf(), folder / "psf.fits").ok());
  const auto preproc = [](const Source& source) { return ReadPreproc(source).status(); };
  const auto coded = [](const Source& source) { return ReadPreprocCoded(source).status(); };
  const auto psf = [](const Source& source) { return ReadPsf(source).status(); };
  const auto outline = [](const Source& source) { return ReadPsfOutline(source).status(); };
  const auto fibermap = [](const Source& source) { return ReadTableHdu(source, "FIBERMAP").status(); };
  const auto image = [](const Source& source) { return ReadImageHdu(source, "IMAGE").status(); };
  std::vector<ReaderOfFile> readers = {{"frame in Rice coding", ReadBytes(folder / "rice.fits"), preproc},
                                       {"frame in gzip", ReadBytes(folder / "plain.fits.gz"), preproc},
                                       {"coded rows", ReadBytes(folder / "rice.fits"), coded},
                                       {"PSF", ReadBytes(folder / "psf.fits"), psf},
                                       {"outline of a PSF", ReadBytes(folder / "psf.fits"), outline},
                                       {"fibermap", ReadBytes(folder / "plain.fits.gz"), fibermap},
                                       {"image", ReadBytes(folder / "rice.fits"), image}};
  for (NamedFile& file : PsfFiles()) readers.push_back({file.type, std::move(file.bytes), psf});
  return readers;
}

// Opens and reads the file with this account.
absl::Status Read(const ReaderOfFile& reader, const std::shared_ptr<CountingAccount>& account) {
  const absl::StatusOr<Source> source = Source::FromBytes("a.fits", reader.bytes, {.memory = account});
  return source.ok() ? reader.read(*source) : source.status();
}

TEST(MemoryOfReaders, EndsTheReadingWhereTheAccountIsEmpty) {
  for (const ReaderOfFile& reader : Readers()) {
    SCOPED_TRACE(reader.name);
    const auto open = std::make_shared<CountingAccount>();
    ASSERT_TRUE(Read(reader, open).ok());
    const int64_t needed = open->peak();
    EXPECT_GT(needed, 0);
    EXPECT_TRUE(Read(reader, std::make_shared<CountingAccount>(needed)).ok());
    for (const int64_t limit : {int64_t{0}, needed / 8, needed / 4, needed / 2, needed - 1})
      EXPECT_TRUE(absl::IsResourceExhausted(Read(reader, std::make_shared<CountingAccount>(limit)))) << limit;
  }
}

TEST(MemoryOfReaders, IsGivenBackWithTheStructureOfAFile) {
  const auto account = std::make_shared<CountingAccount>();
  {
    const Source source = *Source::FromBytes("a.fits", Readers()[1].bytes, {.memory = account});
    const int64_t inflated = account->taken();
    EXPECT_EQ(inflated, static_cast<int64_t>(source.bytes().size()));
    {
      const absl::StatusOr<FitsFile> file = FitsFile::Parse(source);
      ASSERT_TRUE(file.ok());
      EXPECT_EQ(account->taken(), inflated + file->structure_bytes());
    }
    EXPECT_EQ(account->taken(), inflated);
  }
  EXPECT_EQ(account->taken(), 0);
}

TEST(MemoryOfReaders, IsWhatTheHeadersOfAFrameAndAPsfAnnounce) {
  const std::vector<ReaderOfFile> readers = Readers();
  for (const size_t k : {0, 1}) {
    SCOPED_TRACE(readers[k].name);
    const auto account = std::make_shared<CountingAccount>();
    const Source source = *Source::FromBytes("a.fits", readers[k].bytes, {.memory = account});
    const int64_t structure = FitsFile::Parse(source)->structure_bytes();
    const PreprocHeader header = *ReadPreprocHeader(source);
    const int64_t before = account->taken();
    ASSERT_TRUE(ReadPreprocImage(source).ok());
    EXPECT_LE(account->peak() - before, header.decode_bytes + structure);
    EXPECT_LE(account->taken() - before, header.decode_bytes);
  }
  {
    const auto account = std::make_shared<CountingAccount>();
    const Source source = *Source::FromBytes("a.fits", readers[2].bytes, {.memory = account});
    const int64_t announced = *ReadPreprocHeader(source)->coded_bytes, before = account->taken();
    ASSERT_TRUE(ReadPreprocCoded(source).ok());
    EXPECT_LE(account->taken() - before, announced);
  }
  std::vector<std::string> psfs = {readers[3].bytes};
  for (NamedFile& file : PsfFiles()) psfs.push_back(std::move(file.bytes));
  for (const std::string& bytes : psfs) {
    const auto account = std::make_shared<CountingAccount>();
    const Source source = *Source::FromBytes("a.fits", bytes, {.memory = account});
    const int64_t announced = PsfBytes(*ReadPsfOutline(source)), before = account->taken();
    ASSERT_TRUE(ReadPsf(source).ok());
    EXPECT_LE(account->taken() - before, announced);
  }
}

TEST(MemoryOfReaders, CountsTheCardsOfAHeaderBeforeTheyAreCopied) {
  std::vector<std::string> cards = {"SIMPLE  = T", "BITPIX  = 8", "NAXIS   = 0"};
  for (int k = 0; k < 5000; ++k) cards.push_back("COMMENT a card");
  const std::string bytes = HduBytes(cards);
  const auto account = std::make_shared<CountingAccount>(100000);
  const Source source = *Source::FromBytes("a.fits", bytes, {.memory = account});
  EXPECT_TRUE(absl::IsResourceExhausted(FitsFile::Parse(source).status()));
  EXPECT_EQ(account->peak(), 0);
}

}  // namespace
}  // namespace spexd::testing
