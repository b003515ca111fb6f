// Extract and the PSF registry through a real channel, with an engine that answers at once.
#include <cstring>
#include <set>

#include "core/base/digest/crc32c.h"
#include "core/base/digest/sha256.h"
#include "core/fits/writers.h"
#include "tests/service/support/harness.h"
#include "tests/support/matchers.h"

namespace spexd::testing {
namespace {

using grpc::StatusCode;

class ExtractTest : public ServiceTest {
 protected:
  void ExpectRefused(const Answer& answer, StatusCode code, const std::string& words) {
    EXPECT_THAT(answer.status, StatusIs(code, HasSubstr(words)));
    EXPECT_TRUE(answer.parts().empty());
  }
  v1::InputSource UploadOf(const std::string& bytes, const std::string& name) {
    v1::InputSource source;
    source.mutable_upload()->set_name(name);
    source.mutable_upload()->set_bytes(bytes.size());
    source.mutable_upload()->set_sha256(Sha256Hex(bytes));
    return source;
  }
};

float FloatAt(const std::string& bytes, size_t index) {
  float value;
  std::memcpy(&value, bytes.data() + index * sizeof(float), sizeof(float));
  return value;
}

// Expects every fibre once, with the engine's values and right checksums.
void ExpectAllSpectra(const Answer& answer, int first, int count, int bins = 51) {
  ASSERT_TRUE(answer.status.ok()) << answer.message();
  std::set<int> seen;
  for (const v1::BundlePart* part : answer.parts()) {
    ASSERT_EQ(static_cast<int>(part->bins()), bins);
    ASSERT_EQ(part->flux().size(), size_t{4} * bins * part->fibre_count());
    ASSERT_EQ(part->resolution().size(), size_t{44} * bins * part->fibre_count());
    uint32_t crc = 0;
    for (const std::string* bytes :
         {&part->flux(), &part->ivar(), &part->mask(), &part->resolution(), &part->chi2pix()}) {
      crc = ExtendCrc32c(crc, *bytes);
    }
    EXPECT_EQ(crc, part->crc32c());
    for (uint32_t i = 0; i < part->fibre_count(); ++i) {
      const int fibre = static_cast<int>(part->first_fibre() + i);
      EXPECT_TRUE(seen.insert(fibre).second);
      for (int bin = 0; bin < bins; ++bin) {
        ASSERT_EQ(FloatAt(part->flux(), i * bins + bin), FakeFlux(fibre, bin));
        ASSERT_EQ(FloatAt(part->resolution(), (i * 11 + 7) * bins + bin), FakeResolution(fibre, 7, bin));
      }
    }
  }
  EXPECT_EQ(static_cast<int>(seen.size()), count);
  EXPECT_EQ(*seen.begin(), first);
  ASSERT_NE(answer.summary(), nullptr);
}

TEST_F(ExtractTest, ByPathStreamsAcceptedStatesFrameInfoBundlesAndSummary) {
  Start();
  const Answer answer = Extract(PathHeader());
  ExpectAllSpectra(answer, 0, kFibres);
  ASSERT_TRUE(answer.events.front().has_accepted());
  EXPECT_EQ(answer.events.front().accepted().queue_position(), 0u);
  EXPECT_THAT(answer.states(), ElementsAre("queued", "reading", "preparing", "extracting"));
  const v1::FrameInfo* info = answer.frame_info();
  ASSERT_NE(info, nullptr);
  EXPECT_EQ(info->fibre_count(), 10u);
  EXPECT_EQ(info->bundle_size(), 4u);
  EXPECT_EQ(info->bundles(), 3u);
  EXPECT_EQ(info->grid().count(), 51u);
  EXPECT_EQ(info->input_image(), folder_ / "preproc.fits");
  EXPECT_EQ(info->input_psf(), folder_ / "psf.fits");
  EXPECT_TRUE(info->has_fibermap());
  EXPECT_EQ(info->fibermap_rows(), 10u);
  EXPECT_EQ(info->model_rows(), 0u);
  const v1::JobSummary* summary = answer.summary();
  EXPECT_EQ(summary->psf_hash(), Sha256Hex(ReadBytes(folder_ / "psf.fits")));
  EXPECT_EQ(summary->scores().band(), "R");
  EXPECT_EQ(summary->scores().sum_counts_size(), 10);
  EXPECT_EQ(summary->job_id(), answer.events.front().accepted().job_id());
  std::set<std::string> stages;
  for (const auto& stage : summary->stages()) stages.insert(stage.stage());
  for (const char* stage : {"receive", "decode", "prepare", "spots", "model"})
    EXPECT_EQ(stages.count(stage), 1u);
}

TEST_F(ExtractTest, TakesUploadsAndRawArraysAndGivesTheSameSpectra) {
  Start();
  const std::string image = ReadBytes(folder_ / "preproc.fits"), psf = ReadBytes(folder_ / "psf.fits");
  v1::JobHeader header = PathHeader();
  *header.mutable_image() = UploadOf(image, "night/preproc.fits");
  *header.mutable_psf() = UploadOf(psf, "psf.fits");
  const Answer uploaded =
      Extract(header, {{v1::INPUT_IMAGE, image, Sha256Hex(image)}, {v1::INPUT_PSF, psf, "", 777}});
  ExpectAllSpectra(uploaded, 0, kFibres);
  EXPECT_EQ(uploaded.frame_info()->input_image(), "night/preproc.fits");
  EXPECT_EQ(Metric("spexd_received_bytes_total"), static_cast<double>(image.size() + psf.size()));

  const Answer raw = Extract(RawHeader(), {RawUpload()});
  ExpectAllSpectra(raw, 0, kFibres);
  EXPECT_FALSE(raw.frame_info()->has_fibermap());
  EXPECT_EQ(raw.summary()->psf_hash(), uploaded.summary()->psf_hash());
  EXPECT_EQ(engine_->seen().prepares, 1);  // the same PSF from another source
}

TEST_F(ExtractTest, TakesThePsfByTheHashThatASummaryOrLoadPsfGave) {
  Start();
  v1::JobHeader header = PathHeader();
  header.mutable_psf()->set_psf_hash("0123");
  ExpectRefused(Extract(header), StatusCode::FAILED_PRECONDITION, "\"0123\"");
  header.mutable_psf()->set_psf_hash(Extract(PathHeader()).summary()->psf_hash());
  const Answer answer = Extract(header);
  ExpectAllSpectra(answer, 0, kFibres);
  EXPECT_EQ(answer.frame_info()->input_psf(), folder_ / "psf.fits");
}

TEST_F(ExtractTest, TakesAFibermapFromAFileOfItsOwn) {
  Start();
  v1::JobHeader header = RawHeader();
  header.mutable_fibermap()->set_path(folder_ / "preproc.fits");
  const Answer answer = Extract(header, {RawUpload()});
  ExpectAllSpectra(answer, 0, kFibres);
  EXPECT_EQ(answer.frame_info()->fibermap_rows(), 10u);
  header.mutable_fibermap()->set_path(folder_ / "psf.fits");
  ExpectRefused(Extract(header, {RawUpload()}), StatusCode::INVALID_ARGUMENT, "FIBERMAP");
}

TEST_F(ExtractTest, SendsTheFibresTheGridAndTheModelAskedFor) {
  Start();
  v1::JobHeader header = PathHeader();
  header.set_first_fibre(3);
  header.set_fibre_count(4);
  header.set_want_model(true);
  header.set_no_scores(true);
  header.mutable_grid()->set_first(6010);
  header.mutable_grid()->set_step(0.5);
  header.mutable_grid()->set_count(20);
  const Answer answer = Extract(header);
  ExpectAllSpectra(answer, 3, 4, 20);
  EXPECT_EQ(answer.frame_info()->bundles(), 2u);
  EXPECT_EQ(answer.frame_info()->model_rows(), static_cast<uint32_t>(kRows));
  EXPECT_FALSE(answer.summary()->has_scores());
  int models = 0;
  for (const v1::ExtractEvent& event : answer.events) {
    if (!event.has_model()) continue;
    ++models;
    EXPECT_EQ(event.model().pixels().size(), size_t{4} * kRows * 2);
    EXPECT_EQ(Crc32c(event.model().pixels()), event.model().crc32c());
    EXPECT_EQ(FloatAt(event.model().pixels(), 5), static_cast<float>(event.model().bundle() + 1));
  }
  EXPECT_EQ(models, 2);
}

TEST_F(ExtractTest, TellsHowWellThePsfExplainsTheImage) {
  Start();
  const Answer answer = Extract(PathHeader());
  ASSERT_TRUE(answer.status.ok()) << answer.message();
  const v1::FitQuality& fit = answer.summary()->fit();
  EXPECT_EQ(fit.median(), 0.5f);
  EXPECT_EQ(fit.outliers(), 0);
  EXPECT_FALSE(fit.bad());
  EXPECT_THAT(fit.fibre_median(), AllOf(SizeIs(answer.frame_info()->fibre_count()), Each(0.5f)));
  EXPECT_EQ(Metric("spexd_chi2pix_count"), 1);
  EXPECT_EQ(Metric("spexd_chi2pix_sum"), 0.5);
}

TEST_F(ExtractTest, TellsHowExactlyEachBundleWasSolved) {
  Start();
  const Answer answer = Extract(PathHeader());
  ASSERT_TRUE(answer.status.ok()) << answer.message();
  double most = 0;
  for (const v1::BundlePart* part : answer.parts()) {
    EXPECT_EQ(part->residual(), FakeResidual(static_cast<int>(part->bundle())));
    EXPECT_EQ(part->root_error(), 10 * part->residual());
    most = std::max(most, part->residual());
  }
  EXPECT_EQ(answer.summary()->largest_residual(), most);
  EXPECT_EQ(answer.summary()->largest_root_error(), 10 * most);
  EXPECT_EQ(Metric("spexd_flux_residual_count"), 1);
  EXPECT_EQ(Metric("spexd_flux_residual_sum"), most);
  EXPECT_EQ(Metric("spexd_root_error_sum"), 10 * most);
  EXPECT_EQ(Metric("spexd_root_error_bucket{le=\"1e-12\"}"), 0);
  EXPECT_EQ(Metric("spexd_root_error_bucket{le=\"1e-10\"}"), 1);
  EXPECT_EQ(Metric("spexd_root_error_bucket{le=\"1e-06\"}"), 1) << "a bundle above fails";
}

TEST_F(ExtractTest, TellsWhatAJobWasExpectedToTakeAndWhatItTook) {
  engine_->Set([](auto& b) {
    b.estimate.seconds = 0.5;
    b.estimate.min_bytes = 1000;
    b.info.max_bundle_bytes = 1000;
  });
  Start();
  const Answer answer = Extract(PathHeader());
  ASSERT_TRUE(answer.status.ok()) << answer.message();
  EXPECT_EQ(answer.summary()->estimated_seconds(), 0.5);
  EXPECT_GT(answer.summary()->engine_seconds(), 0);
  EXPECT_LE(answer.summary()->engine_seconds(), answer.summary()->run_seconds());
}

TEST_F(ExtractTest, NamesABundleThatFailedAndSendsTheOthers) {
  engine_->Set([](auto& b) { b.failing_bundle = 1; });
  Start();
  const Answer answer = Extract(PathHeader());
  ASSERT_TRUE(answer.status.ok()) << answer.message();
  int failed = 0;
  for (const v1::BundlePart* part : answer.parts()) {
    EXPECT_EQ(part->error().empty(), part->bundle() != 1);
    failed += part->error() == "this bundle fails";
  }
  EXPECT_EQ(failed, 1);
  ASSERT_EQ(answer.summary()->failed_bundles_size(), 1);
  EXPECT_THAT(answer.summary()->failed_bundles(0), HasSubstr("this bundle fails"));
  EXPECT_EQ(answer.summary()->nodata_bins(), 4u * 51);
}

TEST_F(ExtractTest, MapsTheEnginesErrorsAndExceptionsToTheirCodes) {
  Start();
  engine_->Set([](auto& b) { b.extract_error = absl::ResourceExhaustedError("workspace"); });
  const Answer exhausted = Extract(PathHeader());
  ExpectRefused(exhausted, StatusCode::RESOURCE_EXHAUSTED, "workspace");
  EXPECT_EQ(exhausted.retry_seconds(), -1);
  engine_->Set([](auto& b) { b.throws = true; });
  ExpectRefused(Extract(PathHeader()), StatusCode::INTERNAL, "thrown by the fake engine");
  engine_->Set([](auto& b) {
    b = {};
    b.prepare_error = absl::InvalidArgumentError("too fine");
  });
  v1::JobHeader header = PathHeader();
  header.set_bundle_size(5);
  ExpectRefused(Extract(header), StatusCode::INVALID_ARGUMENT, "too fine");
  engine_->Set([](auto& b) { b = {}; });
  ExpectAllSpectra(Extract(header), 0, kFibres);  // nothing is stuck
}

TEST_F(ExtractTest, RefusesFilesThatAreNotWhatTheyShouldBe) {
  Start();
  const std::string image = ReadBytes(folder_ / "preproc.fits");
  WriteText(folder_ / "text.fits", "this is no FITS file");
  WriteText(folder_ / "short.fits", image.substr(0, image.size() / 2));
  const auto refused = [&](const std::string& name) {
    v1::JobHeader header = PathHeader();
    header.mutable_image()->set_path(folder_ / name);
    ExpectRefused(Extract(header), StatusCode::INVALID_ARGUMENT, name);
  };
  refused("text.fits");
  refused("short.fits");
  refused("psf.fits");
}

TEST_F(ExtractTest, RefusesJobsThatCannotBeDone) {
  Start();
  const auto refused = [&](const std::function<void(v1::JobHeader*)>& change, const std::string& words) {
    v1::JobHeader header = PathHeader();
    change(&header);
    ExpectRefused(Extract(header), StatusCode::INVALID_ARGUMENT, words);
  };
  refused([](auto* h) { h->set_first_fibre(10); }, "10");
  refused([](auto* h) { h->set_fibre_count(11); }, "11");
  refused([](auto* h) { h->clear_image(); }, "image: no source");
  refused([](auto* h) { h->mutable_image()->set_psf_hash("a"); }, "image: psf_hash");
  refused([](auto* h) { h->mutable_psf()->mutable_raw(); }, "psf: raw");
  refused(
      [](auto* h) {
        h->mutable_grid()->set_first(9000);
        h->mutable_grid()->set_step(0.8);
        h->mutable_grid()->set_count(10);
      },
      "9000");
  v1::JobHeader raw = RawHeader();
  raw.mutable_image()->mutable_raw()->set_rows(kRows - 1);
  ExpectRefused(Extract(raw, {{v1::INPUT_IMAGE, RawArrays(kRows - 1, kColumns), ""}}),
                StatusCode::INVALID_ARGUMENT, "59");
}

TEST_F(ExtractTest, RefusesAPsfThatOverflowsForOneFibreBeforeItIsEstimated) {
  Psf psf = SmallPsf();
  psf.traces.y.coeff(kFibres - 1, 1) = 1e308;
  ASSERT_TRUE(WritePsf(psf, folder_ / "psf.fits").ok());
  Start();
  ExpectRefused(Extract(PathHeader()), StatusCode::INVALID_ARGUMENT,
                absl::StrCat("YTRACE of fibre ", kFibres - 1, " may reach").c_str());
  EXPECT_EQ(engine_->seen().prepares, 0);
}

TEST_F(ExtractTest, RefusesUploadsThatAreDamagedOrStopEarly) {
  Start();
  const std::string image = ReadBytes(folder_ / "preproc.fits");
  v1::JobHeader header = PathHeader();
  *header.mutable_image() = UploadOf(image, "preproc.fits");
  std::string damaged = image;
  damaged[5000] ^= 1;
  ExpectRefused(Extract(header, {{v1::INPUT_IMAGE, damaged, ""}}), StatusCode::DATA_LOSS, "SHA-256");
  ExpectRefused(Extract(header, {{v1::INPUT_IMAGE, image, Sha256Hex(damaged)}}), StatusCode::DATA_LOSS,
                "SHA-256");
  ExpectRefused(Extract(header, {{v1::INPUT_IMAGE, image, "\x12\n"}}), StatusCode::DATA_LOSS,
                "declared was \\022\\n");
  ExpectRefused(Extract(header, {{v1::INPUT_IMAGE, image.substr(1), ""}}), StatusCode::DATA_LOSS, "of");
  ExpectRefused(Extract(header), StatusCode::DATA_LOSS, "image: the stream ended after 0 bytes");
  const auto without_end = Begin(header);
  v1::ExtractRequest chunk;
  chunk.mutable_chunk()->set_input(v1::INPUT_IMAGE);
  chunk.mutable_chunk()->set_payload(image);
  without_end->stream->Write(chunk);
  without_end->stream->WritesDone();
  EXPECT_FALSE(End(without_end.get()).status.ok());
  ExpectRefused(Extract(header, {{v1::INPUT_PSF, image, ""}}), StatusCode::INVALID_ARGUMENT, "psf");
  EXPECT_EQ(engine_->seen().extracts, 0);
}

TEST_F(ExtractTest, RefusesMessagesOutOfPlace) {
  Start();
  const auto stub = NewStub();
  grpc::ClientContext none;
  const auto without = stub->Extract(&none);
  without->WritesDone();
  ExpectRefused(Finish(without.get(), &none), StatusCode::INVALID_ARGUMENT, "header");
  grpc::ClientContext second;
  const auto twice = stub->Extract(&second);
  SendHeader(twice.get(), RawHeader());
  SendHeader(twice.get(), RawHeader());
  ExpectRefused(Finish(twice.get(), &second), StatusCode::INVALID_ARGUMENT, "second header");
}

TEST_F(ExtractTest, RefusesUploadsOverALimitBeforeTheyCome) {
  options_.max_upload_bytes = 100000;
  options_.max_upload_total_bytes = 60000;
  Start();
  const auto answer = [&](uint64_t bytes) {
    v1::JobHeader header = PathHeader();
    header.mutable_image()->mutable_upload()->set_bytes(bytes);
    return Extract(header);
  };
  const Answer large = answer(uint64_t{1} << 60);
  ExpectRefused(large, StatusCode::INVALID_ARGUMENT, "limit is 100000");
  EXPECT_TRUE(large.events.empty());
  const Answer total = answer(70000);
  ExpectRefused(total, StatusCode::RESOURCE_EXHAUSTED, "60000");
  EXPECT_TRUE(total.events.empty());
  v1::JobHeader raw = RawHeader();
  raw.mutable_image()->mutable_raw()->set_rows(4000000000u);
  ExpectRefused(Extract(raw), StatusCode::INVALID_ARGUMENT, "rows is 4000000000");
  raw.mutable_image()->mutable_raw()->set_rows(0);
  ExpectRefused(Extract(raw), StatusCode::INVALID_ARGUMENT, "rows is 0");
  raw = RawHeader();
  raw.mutable_image()->mutable_raw()->add_header_cards("short");
  ExpectRefused(Extract(raw), StatusCode::INVALID_ARGUMENT, "header_cards[0] has 5");
  EXPECT_EQ(Metric("spexd_rejections_total{reason=\"queue_bytes\"}"), 1);
}

TEST_F(ExtractTest, RefusesCompressedMessages) {
  Start();
  for (const grpc_compression_algorithm algorithm : {GRPC_COMPRESS_DEFLATE, GRPC_COMPRESS_GZIP}) {
    grpc::ClientContext context;
    context.set_compression_algorithm(algorithm);
    v1::JobHeader header = PathHeader();
    header.mutable_image()->mutable_raw()->set_name(std::string(100000, 'x'));  // so that gRPC compresses it
    EXPECT_EQ(Extract(header, {}, &context).status.error_code(), StatusCode::UNIMPLEMENTED);
  }
  ExpectAllSpectra(Extract(PathHeader()), 0, kFibres);
}

class RegistryTest : public ExtractTest {
 protected:
  std::unique_ptr<v1::PsfRegistry::Stub> Registry() const { return v1::PsfRegistry::NewStub(NewChannel()); }
  grpc::Status Load(const v1::LoadPsfHeader& header, const std::string& bytes, v1::PsfInfo* info) const {
    grpc::ClientContext context;
    return LoadPsf(Registry().get(), &context, header, info, bytes);
  }
  v1::ListPsfsResponse List() const {
    v1::ListPsfsResponse response;
    EXPECT_TRUE(ListPsfs(Registry().get(), {}, &response).ok());
    return response;
  }
  grpc::Status Unload(const std::string& hash) const { return UnloadPsf(Registry().get(), hash); }
};

TEST_F(RegistryTest, LoadsByPathAndUploadListsAndUnloads) {
  Start();
  WritePsfFile(folder_ / "other.fits", 1);
  const std::string bytes = ReadBytes(folder_ / "other.fits");
  v1::LoadPsfHeader by_path, by_upload;
  by_path.set_path(folder_ / "psf.fits");
  by_path.set_pin(true);
  by_upload.mutable_upload()->set_name("other.fits");
  by_upload.mutable_upload()->set_bytes(bytes.size());
  by_upload.mutable_upload()->set_sha256(Sha256Hex(bytes));
  v1::PsfInfo first, second, again;
  ASSERT_TRUE(Load(by_path, "", &first).ok());
  ASSERT_TRUE(Load(by_upload, bytes, &second).ok());
  ASSERT_TRUE(Load(by_upload, bytes, &again).ok());
  EXPECT_EQ(second.hash(), Sha256Hex(bytes));
  EXPECT_EQ(again.hash(), second.hash());
  EXPECT_EQ(first.fibres(), 10u);
  EXPECT_TRUE(first.pinned());
  const v1::ListPsfsResponse list = List();
  ASSERT_EQ(list.psfs_size(), 2);
  EXPECT_EQ(list.psfs(0).hash(), second.hash());
  EXPECT_EQ(list.budget_bytes(), uint64_t{1} << 30);
  EXPECT_EQ(Status().psfs_size(), 2);

  v1::JobHeader header = PathHeader();
  header.mutable_psf()->set_psf_hash(second.hash());
  ExpectAllSpectra(Extract(header), 0, kFibres);
  EXPECT_TRUE(Unload(second.hash()).ok());
  EXPECT_EQ(Unload(second.hash()).error_code(), StatusCode::NOT_FOUND);
  ExpectRefused(Extract(header), StatusCode::FAILED_PRECONDITION, second.hash());
}

TEST_F(RegistryTest, ListsPageByPage) {
  Start();
  std::vector<std::string> loaded;  // most recently used first
  for (int variant = 0; variant < 5; ++variant) {
    const std::string name = folder_ / ("psf" + std::to_string(variant) + ".fits");
    WritePsfFile(name, variant);
    v1::LoadPsfHeader header;
    header.set_path(name);
    v1::PsfInfo info;
    ASSERT_TRUE(Load(header, "", &info).ok());
    loaded.insert(loaded.begin(), info.hash());
  }
  std::vector<std::string> listed;
  std::vector<int> sizes;
  v1::ListPsfsRequest request;
  request.set_page_size(2);
  do {
    v1::ListPsfsResponse page;
    ASSERT_TRUE(ListPsfs(Registry().get(), request, &page).ok());
    for (const v1::PsfInfo& psf : page.psfs()) listed.push_back(psf.hash());
    sizes.push_back(page.psfs_size());
    EXPECT_EQ(page.total(), 5u);
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
  EXPECT_EQ(listed, loaded);
  EXPECT_THAT(sizes, ElementsAre(2, 2, 1));
  EXPECT_EQ(List().psfs_size(), 5);
  EXPECT_EQ(Status().psfs_total(), 5u);
}

TEST_F(RegistryTest, RefusesPagesThatItCannotHave) {
  Start();
  const auto refused = [&](uint32_t size, const std::string& token) {
    v1::ListPsfsRequest request;
    request.set_page_size(size);
    request.set_page_token(token);
    v1::ListPsfsResponse response;
    const grpc::Status status = ListPsfs(Registry().get(), request, &response);
    EXPECT_EQ(status.error_code(), StatusCode::INVALID_ARGUMENT);
    return status.error_message();
  };
  EXPECT_THAT(refused(1001, ""), HasSubstr("page_size is 1001, must be at most 1000"));
  for (const char* token :
       {"the second", "-1", " 5 ", "+7", "0x5", "5", "0", "18446744073709551616", "5-00000000"})
    EXPECT_THAT(refused(0, token), HasSubstr("page_token is not one that ListPsfs returned")) << token;
  EXPECT_THAT(refused(0, std::string(2000, '1')), HasSubstr("page_token has 2000 bytes"));
}

TEST_F(RegistryTest, CutsOffAnUploadWithoutAHeaderOrWithoutAnEnd) {
  options_.header_seconds = 5;
  options_.input_seconds = 0.5;
  Start();
  const auto stub = Registry();
  const auto end = [&](const v1::LoadPsfRequest* request) {
    grpc::ClientContext context;
    v1::PsfInfo info;
    const auto writer = stub->LoadPsf(&context, &info);
    if (request != nullptr) writer->Write(*request);
    const grpc::Status status = writer->Finish();
    EXPECT_EQ(status.error_code(), StatusCode::DEADLINE_EXCEEDED);
    return status.error_message();
  };
  EXPECT_THAT(end(nullptr), HasSubstr("no header came within 5 seconds"));
  v1::LoadPsfRequest header;
  header.mutable_header()->mutable_upload()->set_bytes(1000);
  EXPECT_THAT(end(&header), HasSubstr("the input was not complete 0.5 seconds after its header"));
}

TEST_F(RegistryTest, RefusesAnEmptyPiece) {
  Start();
  const auto stub = Registry();
  grpc::ClientContext context;
  v1::PsfInfo info;
  const auto writer = stub->LoadPsf(&context, &info);
  v1::LoadPsfRequest request;
  request.mutable_header()->mutable_upload()->set_bytes(1000);
  writer->Write(request);
  request.set_payload("");
  writer->Write(request);
  EXPECT_THAT(writer->Finish(),
              StatusIs(StatusCode::INVALID_ARGUMENT, HasSubstr("psf: an empty chunk came at offset 0")));
}

TEST_F(RegistryTest, RefusesBadPsfs) {
  Start();
  v1::PsfInfo info;
  v1::LoadPsfHeader header;
  EXPECT_EQ(Load(header, "", &info).error_code(), StatusCode::INVALID_ARGUMENT);
  header.set_path("/etc/passwd");
  EXPECT_EQ(Load(header, "", &info).error_code(), StatusCode::PERMISSION_DENIED);
  header.set_path(folder_ / "missing.fits");
  EXPECT_EQ(Load(header, "", &info).error_code(), StatusCode::NOT_FOUND);
  header.set_path(folder_ / "preproc.fits");
  EXPECT_EQ(Load(header, "", &info).error_code(), StatusCode::INVALID_ARGUMENT);
  header.mutable_upload()->set_bytes(10);
  EXPECT_EQ(Load(header, "12345", &info).error_code(), StatusCode::DATA_LOSS);
  header.mutable_upload()->set_bytes(uint64_t{1} << 50);
  EXPECT_EQ(Load(header, "", &info).error_code(), StatusCode::INVALID_ARGUMENT);
  header.mutable_upload()->set_bytes(10);
  header.mutable_upload()->set_name(std::string(1 << 20, 'x'));
  EXPECT_THAT(Load(header, "1234567890", &info),
              StatusIs(StatusCode::INVALID_ARGUMENT,
                       HasSubstr("upload.name has 1048576 bytes, must be at most 1024")));
  EXPECT_EQ(List().psfs_size(), 0);
}

TEST_F(RegistryTest, RefusesAHashThatIsTooLong) {
  Start();
  EXPECT_THAT(Unload(std::string(5000, 'a')),
              StatusIs(StatusCode::INVALID_ARGUMENT, HasSubstr("hash has 5000 bytes")));
}

}  // namespace
}  // namespace spexd::testing
