// PSFs that are loaded at the start: readiness waits for them, liveness does not.
#include "server/jobs/preload.h"

#include "server/server.h"
#include "tests/service/support/harness.h"
#include "tests/support/matchers.h"
#include "tests/support/process.h"

namespace spexd::testing {
namespace {

class PreloadTest : public ServiceTest {
 protected:
  v1::ListPsfsResponse ListPsfs() {
    v1::ListPsfsResponse psfs;
    EXPECT_TRUE(testing::ListPsfs(v1::PsfRegistry::NewStub(NewChannel()).get(), {}, &psfs).ok());
    return psfs;
  }
  bool Ready() const { return Get("/readyz").first == 200; }
};

TEST(ParsePreloadTest, TakesAPathWithAGridAndABundleSize) {
  EXPECT_FALSE(ParsePreload("--preload-psf", "/a/psf.fits")->grid.has_value());
  const auto all = ParsePreload("--preload-psf", "/a/psf.fits,6000,6040,0.8,5");
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_EQ(all->path, "/a/psf.fits");
  EXPECT_EQ(all->grid->count, 51);
  EXPECT_EQ(all->bundle_size, 5);
  EXPECT_EQ(ParsePreload("--preload-psf", "/a/psf.fits,6000,6040,0.8")->bundle_size, 25);
}

TEST(ParsePreloadTest, SaysWhatIsWrong) {
  const auto message = [](const std::string& text) {
    return std::string(ParsePreload("spexd.conf:3: preload-psf", text).status().message());
  };
  EXPECT_EQ(message("psf.fits"), "spexd.conf:3: preload-psf is \"psf.fits\": the path must begin with /");
  EXPECT_THAT(message(""), HasSubstr("the path must begin with /"));
  EXPECT_THAT(message("/psf.fits,6000"), HasSubstr("must be PATH, PATH,first,last,step or"));
  EXPECT_THAT(message("/psf.fits,6040,6000,0.8"), HasSubstr("6040"));
  EXPECT_THAT(message("/psf.fits,6000,6040,0.8,many"), HasSubstr("the bundle size must be a whole number"));
}

TEST_F(PreloadTest, IsReadyOnceAllPsfsAreWarm) {
  WritePsfFile(folder_ / "other.fits", 1);
  options_.preload_psfs = {folder_ / "other.fits", (folder_ / "psf.fits") + ",6000,6040,0.8,4"};
  options_.pin_preloaded = true;
  engine_->Set([](auto& b) { b.prepare_gate_closed = true; });
  Start();
  ASSERT_TRUE(engine_->WaitUntil([](const auto& seen) { return seen.at_gate == 1; }));
  EXPECT_EQ(Get("/readyz"), std::pair(503, std::string("loading PSFs: 1 of 2 are there\n")));
  EXPECT_EQ(Get("/livez").first, 200);
  EXPECT_THAT(Get("/").second, HasSubstr("loading PSFs: 1 of 2 are there"));
  for (const char* service : {"", "spexd.v1.Extraction"}) EXPECT_EQ(Health(service), kNotServing) << service;
  engine_->Set([](auto& b) { b.prepare_gate_closed = false; });
  EXPECT_TRUE(Eventually([&] { return Ready() && Health("") == kServing; }));
  const v1::ListPsfsResponse psfs = ListPsfs();
  ASSERT_EQ(psfs.psfs_size(), 2);
  for (const v1::PsfInfo& psf : psfs.psfs()) EXPECT_TRUE(psf.pinned());
  EXPECT_EQ(psfs.psfs(0).prepared_grids() + psfs.psfs(1).prepared_grids(), 1u);
  // A job with that grid finds it prepared.
  EXPECT_TRUE(Extract(PathHeader()).status.ok());
  EXPECT_EQ(engine_->seen().prepares, 1);
}

TEST_F(PreloadTest, NeedsNoRootAndFollowsLinks) {
  std::filesystem::create_symlink(folder_ / "psf.fits", folder_ / "link.fits");
  options_.preload_psfs = {folder_ / "link.fits"};
  options_.allow_roots.clear();
  Start();
  EXPECT_TRUE(Eventually([&] { return Ready(); }));
  EXPECT_EQ(ListPsfs().total(), 1u);
  EXPECT_FALSE(ListPsfs().psfs(0).pinned());
}

TEST_F(PreloadTest, StopsWhileItLoads) {
  options_.preload_psfs = {(folder_ / "psf.fits") + ",6000,6040,0.8"};
  engine_->Set([](auto& b) { b.prepare_gate_closed = true; });
  Start();
  ASSERT_TRUE(engine_->WaitUntil([](const auto& seen) { return seen.at_gate == 1; }));
  EXPECT_TRUE(server_->Drain());
  server_.reset();
  EXPECT_EQ(engine_->seen().cancelled, 1);
}

TEST_F(PreloadTest, EndsTheProgramWithTwoIfAFileIsWrong) {
  const auto run = [&](const std::string& preload, const std::vector<std::string>& more = {}) {
    std::vector<std::string> command = Joined({BinFolder() + "/spexd", "--listen", "127.0.0.1:0", "--http",
                                               "none", "--device", "cpu", "--preload-psf", preload},
                                              more);
    Process spexd(command);
    EXPECT_EQ(spexd.Wait(), 2) << spexd.output();
    return spexd.output();
  };
  const std::string image = folder_ / "preproc.fits", psf = folder_ / "psf.fits";
  EXPECT_THAT(run(image),
              AllOf(HasSubstr("spexd: --preload-psf \"" + image + "\": "), HasSubstr("preload_failed")));
  EXPECT_THAT(run(folder_ / "nothing.fits"), HasSubstr("nothing.fits\": No such file"));
  EXPECT_THAT(run(image, {"--check-config"}), HasSubstr("spexd: --preload-psf \"" + image + "\": "));
  EXPECT_THAT(run(psf + ",100,200,1", {"--check-config"}), HasSubstr("exceeds the PSF's domain"));
  EXPECT_THAT(run("psf.fits"), HasSubstr("the path must begin with /"));
}

}  // namespace
}  // namespace spexd::testing
