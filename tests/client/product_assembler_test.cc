// Products as a damaged or foreign server might send them.
#include "proto/assembler/product_assembler.h"

#include <functional>
#include <string>

#include "core/analysis/velocity/velocity.h"
#include "core/base/digest/crc32c.h"
#include "tests/support/matchers.h"

namespace spexd::client {
namespace {

constexpr int64_t kBins = 8;
constexpr FibreRange kFibres = {0, 3};

std::string Zeros(size_t bytes) { return std::string(bytes, '\0'); }

// Returns a complete product: the velocity of one star, in row 0.
v1::VelocityPart OneStar() {
  v1::VelocityPart star;
  star.set_bins(kBins);
  star.set_rows(Zeros(4));
  star.set_velocity(Zeros(8));
  star.set_error(Zeros(8));
  star.set_conditional_error(Zeros(8));
  star.set_vsini(Zeros(8));
  star.set_chi2(Zeros(8));
  star.set_dchi2(Zeros(8));
  star.set_second_velocity(Zeros(8));
  star.set_continuum_chi2(Zeros(8));
  star.set_bins_used(Zeros(4));
  star.set_flag(Zeros(4));
  star.set_model(Zeros(4 * kBins));
  star.set_continuum(Zeros(4 * kBins));
  star.set_scan(Zeros(4 * ScannedVelocities(VelocityOptions()).size()));
  return star;
}

// Returns the part with the checksum of its arrays, in the order of their numbers.
v1::ProductPart PartOf(const v1::VelocityPart& star) {
  uint32_t crc = 0;
  for (const std::string& array :
       {star.rows(), star.velocity(), star.error(), star.conditional_error(), star.parameter_values(),
        star.parameter_errors(), star.vsini(), star.chi2(), star.bins_used(), star.dchi2(),
        star.second_velocity(), star.flag(), star.model(), star.continuum(), star.scan(),
        star.continuum_chi2()}) {
    crc = ExtendCrc32c(crc, array);
  }
  v1::ProductPart part;
  part.set_product(v1::PRODUCT_VELOCITY);
  *part.mutable_velocity() = star;
  part.set_crc32c(crc);
  part.set_last(true);
  return part;
}

void ExpectRefused(const std::function<void(v1::VelocityPart*)>& change, const std::string& message) {
  v1::VelocityPart star = OneStar();
  change(&star);
  EXPECT_THAT(ProductAssembler(kBins, kFibres).Add(PartOf(star)),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(message)));
}

TEST(ProductAssembler, TakesAStar) {
  ProductAssembler assembler(kBins, kFibres);
  ASSERT_TRUE(assembler.Add(PartOf(OneStar())).ok());
  const absl::StatusOr<NamedProducts> products = assembler.Finish();
  ASSERT_TRUE(products.ok());
  EXPECT_EQ(products->products.velocities->size(), 1u);
}

TEST(ProductAssembler, RefusesArraysOfOtherSizesThanItsFilesHave) {
  ExpectRefused([](auto* star) { star->mutable_scan()->append(Zeros(4)); }, "velocity: an array of");
  ExpectRefused([](auto* star) { star->clear_scan(); }, "velocity: an array of 0 bytes");
  ExpectRefused([](auto* star) { star->mutable_model()->append(Zeros(4)); },
                "velocity: an array of 36 bytes");
  ExpectRefused([](auto* star) { star->set_velocity(Zeros(16)); }, "velocity: an array of 16 bytes");
  ExpectRefused([](auto* star) { star->add_parameters("TEFF"); }, "velocity: an array of 0 bytes");
  ExpectRefused([](auto* star) { star->set_bins(kBins + 1); }, "velocity: bins or parameters");
}

TEST(ProductAssembler, RefusesRowsThatTheFrameHasNot) {
  ExpectRefused([](auto* star) { star->set_rows(std::string("\3\0\0\0", 4)); }, "row 3 of a frame of 3");
  ExpectRefused([](auto* star) { star->set_rows(Zeros(8)); }, "row 0 of a frame of 3, or out of order");
  ExpectRefused([](auto* star) { star->set_rows(Zeros(3)); }, "rows that are not whole numbers");
}

TEST(ProductAssembler, RefusesDamageAndProductsThatAreNotWhole) {
  v1::ProductPart damaged = PartOf(OneStar());
  damaged.mutable_velocity()->mutable_chi2()->at(3) ^= 1;
  EXPECT_THAT(std::string(ProductAssembler(kBins, kFibres).Add(damaged).message()), HasSubstr("checksum"));

  v1::ProductPart first = PartOf(OneStar());
  first.set_last(false);
  ProductAssembler assembler(kBins, kFibres);
  ASSERT_TRUE(assembler.Add(first).ok());
  EXPECT_THAT(std::string(assembler.Finish().status().message()), HasSubstr("is not whole"));
}

}  // namespace
}  // namespace spexd::client
