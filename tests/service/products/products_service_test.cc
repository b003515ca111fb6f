// Products of the service, through a real channel: what a job asks for, what it gets, and what goes wrong.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <stop_token>
#include <thread>

#include "absl/strings/str_format.h"
#include "client/connection/grpc_connection.h"
#include "client/detached_client.h"
#include "client/extract_client.h"
#include "core/base/digest/sha256.h"
#include "core/products/product_files.h"
#include "core/products/template_file.h"
#include "proto/assembler/event_assembler.h"
#include "server/server.h"
#include "tests/service/support/harness.h"
#include "tests/service/support/product_inputs.h"
#include "tests/support/matchers.h"

namespace spexd::testing {
namespace {

using grpc::StatusCode;

constexpr int kBins = 51;
constexpr int kTargets = kFibres / 2;

class ProductsTest : public ServiceTest {
 protected:
  ProductsTest() {
    WritePreprocWithSky(folder_ / "preproc.fits");
    WriteFiberflat(folder_ / "flat.fits", kFibres, kBins);
    WriteTemplates(folder_ / "templates.fits", {});
    engine_->Set([](auto& b) { b.reshape = ReshapeToSpectra; });
  }
  v1::JobHeader SkyHeader() const {
    v1::JobHeader header = PathHeader();
    header.mutable_products()->set_sky(true);
    return header;
  }
  v1::JobHeader FullHeader() const {
    v1::JobHeader header = SkyHeader();
    header.mutable_products()->set_lines(true);
    header.mutable_products()->mutable_fiberflat()->set_path(folder_ / "flat.fits");
    header.mutable_products()->mutable_templates()->set_path(folder_ / "templates.fits");
    return header;
  }
  client::Job FullJob() const {
    client::Job job;
    job.image = folder_ / "preproc.fits";
    job.psf = folder_ / "psf.fits";
    job.spec.bundle_size = 4;
    job.products = {true, true, folder_ / "templates.fits", folder_ / "flat.fits"};
    return job;
  }
  std::unique_ptr<client::Connection> Connect() const {
    return client::MakeGrpcConnection(server_->grpc_address());
  }
  // Returns the parts of one product, or of all.
  static std::vector<const v1::ProductPart*> PartsOf(const Answer& answer, int product = -1) {
    std::vector<const v1::ProductPart*> parts;
    for (const v1::ExtractEvent& event : answer.events) {
      if (event.has_product() && (product < 0 || event.product().product() == product))
        parts.push_back(&event.product());
    }
    return parts;
  }
  static void ExpectMade(const Answer& answer, v1::Product product) {
    const auto parts = PartsOf(answer, product);
    ASSERT_FALSE(parts.empty()) << product;
    EXPECT_EQ(parts[0]->code(), 0) << parts[0]->error();
    EXPECT_TRUE(parts.back()->last());
  }
  static void ExpectFailed(const Answer& answer, v1::Product product, StatusCode code,
                           const std::string& words) {
    const auto parts = PartsOf(answer, product);
    ASSERT_EQ(parts.size(), 1u) << product;
    EXPECT_EQ(parts[0]->code(), static_cast<int>(code));
    EXPECT_THAT(parts[0]->error(), HasSubstr(words));
    EXPECT_EQ(parts[0]->part_case(), v1::ProductPart::PART_NOT_SET);
    EXPECT_TRUE(parts[0]->last());
  }
  // Expects the spectra of a job without products, to the byte.
  void ExpectSpectraUnharmed(const Answer& answer) {
    ASSERT_TRUE(answer.status.ok()) << answer.message();
    const Answer without = Extract(PathHeader());
    ASSERT_EQ(answer.parts().size(), without.parts().size());
    for (size_t k = 0; k < without.parts().size(); ++k)
      EXPECT_EQ(answer.parts()[k]->SerializeAsString(), without.parts()[k]->SerializeAsString());
    ASSERT_NE(answer.summary(), nullptr);
  }
  // Expects the products that Analyse makes of the frame.
  void ExpectProductsOf(const JobOutcome& outcome) const {
    ASSERT_TRUE(outcome.products.has_value());
    const FrameProducts& made = outcome.products->products;
    AnalysisRequest request;
    request.velocities = request.lines = true;
    const Fiberflat fiberflat = *ReadFiberflat(*Source::FromFile(folder_ / "flat.fits"));
    const TemplateLibrary templates = *ReadTemplates(*Source::FromFile(folder_ / "templates.fits"));
    request.fiberflat = &fiberflat;
    request.templates = &templates;
    const absl::StatusOr<FrameProducts> expected = Analyse(outcome.frame, request);
    ASSERT_TRUE(expected.ok()) << expected.status();
    EXPECT_EQ(made.targets, expected->targets);
    EXPECT_THAT(outcome.products->parameters, ElementsAre("TEFF"));
    ASSERT_TRUE(expected->sky.ok() && made.sky.ok()) << made.sky.status();
    for (int64_t k = 0; k < made.sky->model.size(); ++k) {
      EXPECT_EQ(made.sky->model.flat()[k], static_cast<float>(expected->sky->model.flat()[k]));
      EXPECT_EQ(made.sky->ivar.flat()[k], static_cast<float>(expected->sky->ivar.flat()[k]));
    }
    EXPECT_EQ(made.sky->deconvolved, expected->sky->deconvolved);
    EXPECT_EQ(made.sky->throughput, expected->sky->throughput);
    EXPECT_EQ(made.sky->sky_fibres, expected->sky->sky_fibres);
    ASSERT_TRUE(expected->velocities.ok() && made.velocities.ok()) << made.velocities.status();
    ASSERT_EQ(made.velocities->size(), static_cast<size_t>(kTargets));
    for (size_t k = 0; k < made.velocities->size(); ++k) {
      const StarVelocity &star = (*made.velocities)[k], &other = (*expected->velocities)[k];
      EXPECT_EQ(star.v, other.v);
      EXPECT_EQ(star.parameters, other.parameters);
      EXPECT_EQ(star.chi2, other.chi2);
      EXPECT_EQ(star.flag, other.flag);
      ASSERT_EQ(star.arms[0].model.size(), other.arms[0].model.size());
      EXPECT_EQ(star.arms[0].model[20], static_cast<float>(other.arms[0].model[20]));
      EXPECT_EQ(star.scan.size(), other.scan.size());
    }
    ASSERT_TRUE(expected->lines.ok() && made.lines.ok()) << made.lines.status();
    for (size_t k = 0; k < made.lines->size(); ++k) {
      EXPECT_EQ((*made.lines)[k].z, (*expected->lines)[k].z);
      EXPECT_EQ((*made.lines)[k].gap, (*expected->lines)[k].gap);
      EXPECT_THAT((*made.lines)[k].error, ::testing::NanSensitiveDoubleEq((*expected->lines)[k].error));
      EXPECT_EQ((*made.lines)[k].warning, (*expected->lines)[k].warning);
    }
  }
};

TEST_F(ProductsTest, ComeAfterAllBundlesAndBeforeTheSummary) {
  Start();
  const Answer answer = Extract(FullHeader());
  ExpectSpectraUnharmed(answer);
  for (const v1::Product product : {v1::PRODUCT_SKY, v1::PRODUCT_LINES, v1::PRODUCT_VELOCITY})
    ExpectMade(answer, product);
  EXPECT_THAT(answer.states(), ElementsAre("queued", "reading", "preparing", "extracting", "analysing"));
  bool bundles = true, products = false;
  for (const v1::ExtractEvent& event : answer.events) {
    EXPECT_TRUE(bundles || !event.has_bundle());
    if (event.has_product()) {
      bundles = false;
      products = true;
    }
    EXPECT_TRUE(products || !event.has_summary());
  }
  EXPECT_TRUE(answer.events.back().has_summary());
  std::vector<std::string> stages;
  for (const auto& stage : answer.summary()->stages()) stages.push_back(stage.stage());
  EXPECT_THAT(std::vector<std::string>(stages.end() - 3, stages.end()),
              ElementsAre("sky", "lines", "velocity"));
  EXPECT_EQ(Metric("spexd_stage_duration_seconds_count{stage=\"velocity\"}"), 1);
  EXPECT_EQ(Metric("spexd_products_total{outcome=\"ok\",product=\"sky\"}"), 1);
  EXPECT_THAT(Status().products(), ElementsAre(v1::PRODUCT_SKY, v1::PRODUCT_LINES, v1::PRODUCT_VELOCITY));
}

TEST_F(ProductsTest, AreThoseOfTheFrameThatCameByPathAndByUpload) {
  Start();
  const auto connection = Connect();
  for (const bool upload : {false, true}) {
    const auto outcome = client::RemoteExtractor(connection.get(), {.upload = upload, .retry = {}})
                             .Run(FullJob(), nullptr, {});
    ASSERT_TRUE(outcome.ok()) << outcome.status();
    ExpectProductsOf(*outcome);
  }
}

// Returns the status of the answer's assembly by a client.
absl::Status Assembled(const std::vector<v1::ExtractEvent>& events) {
  EventAssembler assembler(nullptr);
  for (const v1::ExtractEvent& event : events) {
    if (absl::Status added = assembler.Add(event); !added.ok()) return added;
  }
  return assembler.Finish().status();
}

TEST_F(ProductsTest, AClientNoticesPartsThatAreDamagedMissingOrOutOfOrder) {
  Start();
  const Answer answer = Extract(FullHeader());
  ASSERT_TRUE(Assembled(answer.events).ok()) << Assembled(answer.events);
  const auto product = std::find_if(answer.events.begin(), answer.events.end(),
                                    [](const auto& event) { return event.has_product(); });
  const size_t at = static_cast<size_t>(product - answer.events.begin());
  const auto expect_noticed = [&](const auto& change, const std::string& words) {
    std::vector<v1::ExtractEvent> events = answer.events;
    change(&events);
    const absl::Status status = Assembled(events);
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kDataLoss, HasSubstr(words)));
  };
  using Events = std::vector<v1::ExtractEvent>;
  expect_noticed([&](Events* e) { (*(*e)[at].mutable_product()->mutable_sky()->mutable_flux())[5] ^= 1; },
                 "checksum");
  expect_noticed([&](Events* e) { (*e)[at].mutable_product()->set_last(false); }, "out of order");
  expect_noticed([&](Events* e) { e->insert(e->begin() + static_cast<int64_t>(at), (*e)[at]); },
                 "out of order");
  expect_noticed([&](Events* e) { (*e)[at].mutable_product()->mutable_sky()->set_bins(kBins + 1); },
                 "not the frame's");
  expect_noticed([&](Events* e) { std::swap((*e)[at], e->front()); }, "before all bundles");
  expect_noticed([&](Events* e) { (*e)[at].mutable_product()->set_code(99); }, "status 99");
}

TEST_F(ProductsTest, AJobThatAsksForNoneSeesNothingNew) {
  Start();
  const Answer answer = Extract(PathHeader());
  ASSERT_TRUE(answer.status.ok());
  EXPECT_THAT(PartsOf(answer), IsEmpty());
  EXPECT_THAT(answer.states(), ElementsAre("queued", "reading", "preparing", "extracting"));
  EXPECT_EQ(Metric("spexd_stage_duration_seconds_count{stage=\"sky\"}"), 0);
}

TEST_F(ProductsTest, WithoutSkyFibresEachHasItsErrorAndTheSpectraAreUnharmed) {
  WritePreprocWithSky(folder_ / "preproc.fits", false);
  Start();
  const Answer answer = Extract(FullHeader());
  for (const v1::Product product : {v1::PRODUCT_SKY, v1::PRODUCT_LINES, v1::PRODUCT_VELOCITY})
    ExpectFailed(answer, product, StatusCode::FAILED_PRECONDITION, "no sky fibre has data");
  ExpectSpectraUnharmed(answer);
  EXPECT_EQ(Metric("spexd_products_total{outcome=\"failed\",product=\"velocity\"}"), 1);
}

TEST_F(ProductsTest, AFiberflatOfAnotherShapeOrNoneFailsThemAll) {
  WriteFiberflat(folder_ / "flat.fits", kFibres, kBins - 1);
  Start();
  const Answer shape = Extract(FullHeader());
  for (const v1::Product product : {v1::PRODUCT_SKY, v1::PRODUCT_LINES, v1::PRODUCT_VELOCITY})
    ExpectFailed(shape, product, StatusCode::INVALID_ARGUMENT,
                 "fiberflat: has 50 wavelengths, must have the 51");
  ExpectSpectraUnharmed(shape);
  v1::JobHeader header = SkyHeader();
  header.mutable_products()->mutable_fiberflat()->set_path(folder_ / "psf.fits");
  const Answer other = Extract(header);
  ExpectFailed(other, v1::PRODUCT_SKY, StatusCode::INVALID_ARGUMENT, "FIBERFLAT");
  ExpectSpectraUnharmed(other);
}

TEST_F(ProductsTest, ALibraryWithAHoleOrOfAnotherRangeFailsTheVelocitiesAlone) {
  for (const auto& [library, why] : {std::pair(TemplateGrid{.hole = true}, "templates"),
                                     {TemplateGrid{.first = 7000, .last = 7100}, "templates: reach from"}}) {
    WriteTemplates(folder_ / "templates.fits", library);
    Start();
    const Answer answer = Extract(FullHeader());
    ExpectMade(answer, v1::PRODUCT_SKY);
    ExpectMade(answer, v1::PRODUCT_LINES);
    ExpectFailed(answer, v1::PRODUCT_VELOCITY, StatusCode::INVALID_ARGUMENT, why);
    ExpectSpectraUnharmed(answer);
  }
}

TEST_F(ProductsTest, AHashThatIsNotWarmFailsTheProductsThatNeedIt) {
  Start();
  v1::JobHeader header = FullHeader();
  header.mutable_products()->mutable_templates()->set_content_hash("0123");
  const Answer templates = Extract(header);
  ExpectMade(templates, v1::PRODUCT_SKY);
  ExpectMade(templates, v1::PRODUCT_LINES);
  ExpectFailed(templates, v1::PRODUCT_VELOCITY, StatusCode::FAILED_PRECONDITION,
               "content_hash \"0123\" names no templates that is loaded");
  ExpectSpectraUnharmed(templates);
  header = FullHeader();
  header.mutable_products()->mutable_fiberflat()->set_content_hash("0123");
  const Answer fiberflat = Extract(header);
  for (const v1::Product product : {v1::PRODUCT_SKY, v1::PRODUCT_LINES, v1::PRODUCT_VELOCITY})
    ExpectFailed(fiberflat, product, StatusCode::FAILED_PRECONDITION, "\"0123\" names no fiberflat");
  ExpectSpectraUnharmed(fiberflat);
}

TEST_F(ProductsTest, WhatNeedsMoreMemoryThanTheServerHasFailsWithTheLimit) {
  options_.max_product_bytes = 1000;
  Start();
  const Answer answer = Extract(FullHeader());
  ExpectFailed(answer, v1::PRODUCT_SKY, StatusCode::RESOURCE_EXHAUSTED, "the server's limit is 1000");
  ExpectSpectraUnharmed(answer);
}

TEST_F(ProductsTest, NamesThatLeadNowhereRefuseTheJob) {
  Start();
  const auto refused = [&](const v1::JobHeader& header, StatusCode code, const std::string& words) {
    const Answer answer = Extract(header);
    EXPECT_THAT(answer.status, StatusIs(code, HasSubstr(words)));
    EXPECT_TRUE(answer.parts().empty());
  };
  v1::JobHeader header = SkyHeader();
  header.mutable_products()->mutable_fiberflat()->set_path(folder_ / "none.fits");
  refused(header, StatusCode::NOT_FOUND, "none.fits");
  header.mutable_products()->mutable_fiberflat()->set_content_hash(std::string(2000, 'a'));
  refused(header, StatusCode::INVALID_ARGUMENT, "products.fiberflat.content_hash has 2000 bytes");
  header.mutable_products()->mutable_fiberflat()->set_psf_hash("0123");
  refused(header, StatusCode::INVALID_ARGUMENT, "psf_hash is only for the PSF");
  header = PathHeader();
  header.mutable_products();
  refused(header, StatusCode::INVALID_ARGUMENT, "products: none is asked for");
  header = PathHeader();
  header.mutable_image()->set_content_hash("0123");
  refused(header, StatusCode::INVALID_ARGUMENT, "content_hash is only for");
}

class ProductsRegistryTest : public ProductsTest {
 protected:
  std::unique_ptr<v1::PsfRegistry::Stub> Registry() const { return v1::PsfRegistry::NewStub(NewChannel()); }
  grpc::Status Load(v1::WarmKind kind, const std::string& file, v1::PsfInfo* info,
                    bool pinned = false) const {
    v1::LoadPsfHeader header;
    header.set_path(folder_ / file);
    header.set_kind(kind);
    header.set_pin(pinned);
    grpc::ClientContext context;
    return LoadPsf(Registry().get(), &context, header, info);
  }
  std::vector<std::string> List(v1::WarmKind kind) const {
    v1::ListPsfsRequest request;
    request.set_kind(kind);
    v1::ListPsfsResponse response;
    EXPECT_TRUE(ListPsfs(Registry().get(), request, &response).ok());
    std::vector<std::string> names;
    for (const v1::PsfInfo& info : response.psfs())
      names.push_back(std::filesystem::path(info.name()).filename());
    return names;
  }
};

TEST_F(ProductsRegistryTest, KeepsFiberflatsAndTemplatesBesidePsfs) {
  Start();
  v1::PsfInfo flat, templates, psf;
  ASSERT_TRUE(Load(v1::WARM_KIND_FIBERFLAT, "flat.fits", &flat).ok());
  ASSERT_TRUE(Load(v1::WARM_KIND_TEMPLATES, "templates.fits", &templates).ok());
  ASSERT_TRUE(Load(v1::WARM_KIND_PSF, "psf.fits", &psf).ok());
  EXPECT_EQ(flat.hash(), Sha256Hex(ReadBytes(folder_ / "flat.fits")));
  EXPECT_EQ(flat.rows(), static_cast<uint32_t>(kFibres));
  EXPECT_EQ(flat.columns(), static_cast<uint32_t>(kBins));
  EXPECT_EQ(templates.kind(), v1::WARM_KIND_TEMPLATES);
  EXPECT_EQ(templates.rows(), 4u);
  EXPECT_THAT(List(v1::WARM_KIND_PSF), ElementsAre("psf.fits"));
  EXPECT_THAT(List(v1::WARM_KIND_FIBERFLAT), ElementsAre("flat.fits"));
  EXPECT_EQ(Status().psfs_size(), 1);
  // A job that names these hashes loads nothing.
  v1::JobHeader header = FullHeader();
  header.mutable_products()->mutable_fiberflat()->set_content_hash(flat.hash());
  header.mutable_products()->mutable_templates()->set_content_hash(templates.hash());
  const Answer answer = Extract(header);
  ExpectMade(answer, v1::PRODUCT_VELOCITY);
  EXPECT_EQ(Metric("spexd_psf_cache_misses_total{kind=\"templates\"}"), 1);
  EXPECT_GE(Metric("spexd_psf_cache_hits_total{kind=\"templates\"}"), 1);
  EXPECT_TRUE(UnloadPsf(Registry().get(), flat.hash(), v1::WARM_KIND_FIBERFLAT).ok());
  EXPECT_THAT(List(v1::WARM_KIND_FIBERFLAT), IsEmpty());
}

TEST_F(ProductsRegistryTest, RefusesAFileOfAnotherKindAndAKindThatThereIsNot) {
  Start();
  v1::PsfInfo info;
  EXPECT_THAT(Load(v1::WARM_KIND_TEMPLATES, "flat.fits", &info),
              StatusIs(StatusCode::INVALID_ARGUMENT, HasSubstr("TEMPLATES")));
  EXPECT_THAT(Load(static_cast<v1::WarmKind>(9), "flat.fits", &info),
              StatusIs(StatusCode::INVALID_ARGUMENT, HasSubstr("kind is 9")));
}

TEST_F(ProductsRegistryTest, EvictsTemplatesThatNobodyUses) {
  options_.psf_cache_bytes = 10;
  Start();
  const Answer answer = Extract(FullHeader());
  ExpectMade(answer, v1::PRODUCT_VELOCITY);
  EXPECT_THAT(List(v1::WARM_KIND_TEMPLATES), IsEmpty());
  EXPECT_THAT(List(v1::WARM_KIND_FIBERFLAT), IsEmpty());
}

TEST_F(ProductsRegistryTest, TemplatesThatWereEvictedFailTheJobsProductThatNamesThemAlone) {
  Start();
  v1::PsfInfo first;
  ASSERT_TRUE(Load(v1::WARM_KIND_TEMPLATES, "templates.fits", &first).ok());
  server_.reset();
  options_.psf_cache_bytes = 5 * static_cast<int64_t>(first.bytes()) / 2;
  Start();
  ASSERT_TRUE(Load(v1::WARM_KIND_TEMPLATES, "templates.fits", &first).ok());
  v1::JobHeader header = FullHeader();
  header.mutable_products()->mutable_templates()->set_content_hash(first.hash());
  for (int number = 0; number < 3; ++number) {
    const std::string name = absl::StrFormat("templates-%d.fits", number);
    WriteTemplates(folder_ / name, {.nodes = 4, .last = 6100 - 0.5 * number});
    v1::PsfInfo next;
    ASSERT_TRUE(Load(v1::WARM_KIND_TEMPLATES, name, &next).ok());
  }
  EXPECT_GT(Metric("spexd_psf_cache_evictions_total"), 0);
  EXPECT_LE(Metric("spexd_psf_cache_bytes"), static_cast<double>(options_.psf_cache_bytes));
  const Answer answer = Extract(header);
  ExpectMade(answer, v1::PRODUCT_SKY);
  ExpectMade(answer, v1::PRODUCT_LINES);
  ExpectFailed(answer, v1::PRODUCT_VELOCITY, StatusCode::FAILED_PRECONDITION, first.hash());
  ExpectSpectraUnharmed(answer);
  // After they are registered again, the same job succeeds.
  ASSERT_TRUE(Load(v1::WARM_KIND_TEMPLATES, "templates.fits", &first).ok());
  ExpectMade(Extract(header), v1::PRODUCT_VELOCITY);
}

TEST_F(ProductsRegistryTest, AStormOfTemplatesAndFiberflatsStaysWithinTheBudgetAndHarmsNoJob) {
  constexpr int kCallers = 6, kFiles = 5;
  const auto file = [](const char* kind, int caller, int number) {
    return absl::StrFormat("%s-%d-%d.fits", kind, caller, number);
  };
  for (int caller = 0; caller < kCallers; ++caller) {
    for (int number = 0; number < kFiles; ++number) {
      const int64_t other = kFiles * caller + number;
      WriteTemplates(folder_ / file("templates", caller, number),
                     {.nodes = 4, .first = 5940 - 0.5 * static_cast<double>(other)});
      WriteFiberflat(folder_ / file("flat", caller, number), kFibres + other, kBins);
    }
  }
  Start();
  v1::PsfInfo templates;
  ASSERT_TRUE(Load(v1::WARM_KIND_TEMPLATES, "templates.fits", &templates).ok());
  server_.reset();
  options_.psf_cache_bytes = 3 * static_cast<int64_t>(templates.bytes());
  Start();
  std::atomic<int> loaded = 0;
  {
    std::vector<std::jthread> callers;
    for (int caller = 0; caller < kCallers; ++caller) {
      callers.emplace_back([&, caller] {
        for (int number = 0; number < kFiles; ++number) {
          v1::PsfInfo info;
          for (const grpc::Status& status :
               {Load(v1::WARM_KIND_TEMPLATES, file("templates", caller, number), &info),
                Load(v1::WARM_KIND_FIBERFLAT, file("flat", caller, number), &info)}) {
            EXPECT_TRUE(status.ok() || status.error_code() == StatusCode::RESOURCE_EXHAUSTED)
                << status.error_message();
            loaded += status.ok() ? 1 : 0;
          }
        }
      });
    }
    for (int job = 0; job < 3; ++job) {
      const Answer answer = Extract(FullHeader());
      for (const v1::Product product : {v1::PRODUCT_SKY, v1::PRODUCT_LINES, v1::PRODUCT_VELOCITY})
        ExpectMade(answer, product);
      ExpectSpectraUnharmed(answer);
    }
  }
  EXPECT_GT(loaded, 0);
  EXPECT_GT(Metric("spexd_psf_cache_evictions_total"), 0);
  EXPECT_TRUE(Eventually([&] {
    return Metric("spexd_psf_cache_bytes") <= static_cast<double>(options_.psf_cache_bytes);
  })) << Metric("spexd_psf_cache_bytes");
  // An evicted one can be loaded again.
  v1::PsfInfo again;
  EXPECT_TRUE(Load(v1::WARM_KIND_TEMPLATES, file("templates", 0, 0), &again).ok());
}

TEST_F(ProductsRegistryTest, PinnedTemplatesFillTheBudgetAndNoMore) {
  Start();
  v1::PsfInfo info;
  ASSERT_TRUE(Load(v1::WARM_KIND_TEMPLATES, "templates.fits", &info).ok());
  server_.reset();
  options_.psf_cache_bytes = 5 * static_cast<int64_t>(info.bytes()) / 2;
  Start();
  std::vector<StatusCode> codes;
  for (int number = 0; number < 6; ++number) {
    const std::string name = absl::StrFormat("templates-%d.fits", number);
    WriteTemplates(folder_ / name, {.nodes = 4, .last = 6100 - 0.5 * number});
    codes.push_back(Load(v1::WARM_KIND_TEMPLATES, name, &info, true).error_code());
  }
  EXPECT_THAT(codes, ElementsAre(StatusCode::OK, StatusCode::OK, StatusCode::RESOURCE_EXHAUSTED,
                                 StatusCode::RESOURCE_EXHAUSTED, StatusCode::RESOURCE_EXHAUSTED,
                                 StatusCode::RESOURCE_EXHAUSTED));
  EXPECT_LE(Metric("spexd_psf_cache_bytes"), static_cast<double>(options_.psf_cache_bytes));
  const Answer answer = Extract(FullHeader());  // a job's own inputs pass through
  ExpectMade(answer, v1::PRODUCT_VELOCITY);
  ExpectSpectraUnharmed(answer);
}

TEST_F(ProductsTest, TheSlotIsFreeWhileTheyAreMadeAndACancellationEndsThem) {
  WriteTemplates(folder_ / "templates.fits", {.nodes = 60, .step_kms = 0.25});
  options_.engine.threads = 1;
  options_.max_running_jobs = 1;
  Start();
  const auto slow = Send(FullHeader());
  slow->stream->WritesDone();
  v1::ExtractEvent event;
  bool lines = false;
  while (!lines && slow->stream->Read(&event))
    lines = event.has_product() && event.product().product() == v1::PRODUCT_LINES;
  ASSERT_TRUE(lines);
  EXPECT_TRUE(Extract(PathHeader()).status.ok());  // there is only one slot
  slow->context.TryCancel();
  const Answer answer = End(slow.get());
  EXPECT_EQ(answer.status.error_code(), StatusCode::CANCELLED);
  EXPECT_THAT(PartsOf(answer, v1::PRODUCT_VELOCITY), IsEmpty());
  EXPECT_TRUE(Eventually([&] { return Metric("spexd_cancellations_total{stage=\"analysing\"}") == 1; }));
  // The threads are free again.
  ExpectMade(Extract(SkyHeader()), v1::PRODUCT_SKY);
}

TEST_F(ProductsTest, ADeadlineEndsThemBetweenOneAndTheNext) {
  WriteTemplates(folder_ / "templates.fits", {.nodes = 60, .step_kms = 0.25});
  options_.engine.threads = 1;
  Start();
  bool lines = false;
  // A busy machine may need longer for the redshifts.
  for (std::chrono::seconds time(2); !lines && time < std::chrono::minutes(1); time *= 4) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + time);
    const Answer answer = Extract(FullHeader(), {}, &context);
    EXPECT_EQ(answer.status.error_code(), StatusCode::DEADLINE_EXCEEDED) << answer.message();
    EXPECT_THAT(PartsOf(answer, v1::PRODUCT_VELOCITY), IsEmpty());
    lines = !PartsOf(answer, v1::PRODUCT_LINES).empty();
  }
  EXPECT_TRUE(lines);
  EXPECT_TRUE(Eventually([&] { return Metric("spexd_cancellations_total{stage=\"analysing\"}") >= 1; }));
  // The threads are free again.
  ExpectMade(Extract(SkyHeader()), v1::PRODUCT_SKY);
}

// A deadline is also such a stop.
TEST_F(ProductsTest, AStopBetweenTwoLeavesTheFirstAndCancelsTheOthers) {
  Start();
  const auto connection = Connect();
  const auto outcome = client::RemoteExtractor(connection.get(), {.retry = {}}).Run(FullJob(), nullptr, {});
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  std::stop_source stop;
  AnalysisRequest request;
  request.velocities = request.lines = true;
  const TemplateLibrary templates = *ReadTemplates(*Source::FromFile(folder_ / "templates.fits"));
  request.templates = &templates;
  request.stop = stop.get_token();
  const absl::StatusOr<FrameProducts> made =
      Analyse(outcome->frame, request, [&](Product, const FrameProducts&, double) { stop.request_stop(); });
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_TRUE(made->sky.ok()) << made->sky.status();
  EXPECT_TRUE(absl::IsCancelled(made->lines.status())) << made->lines.status();
  EXPECT_TRUE(absl::IsCancelled(made->velocities.status())) << made->velocities.status();
}

TEST_F(ProductsTest, OfADetachedJobAreKeptWithItsBundlesOverARestart) {
  options_.jobs_dir = folder_ / "jobs";
  Start();
  const auto watch = [&](const std::string& id) {
    const auto connection = Connect();
    return client::DetachedClient({connection.get()}).Watch(id, nullptr, std::nullopt, {});
  };
  const auto submitted = [&] {
    const auto connection = Connect();
    return client::DetachedClient({connection.get()})
        .Submit(FullJob(), {.request_id = "a", .upload = true}, nullptr, {});
  }();
  ASSERT_TRUE(submitted.ok()) << submitted.status();
  const auto first = watch(submitted->job_id);
  ASSERT_TRUE(first.ok()) << first.status();
  ExpectProductsOf(first->outcome);
  server_.reset();
  Start();
  const auto again = watch(submitted->job_id);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->last_sequence, first->last_sequence);
  ExpectProductsOf(again->outcome);
}

}  // namespace
}  // namespace spexd::testing
