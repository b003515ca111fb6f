// The operations of the fake runtime that are reported as unordered.
#include "tests/cuda_runtime/stream_order.h"

#include "cuda/memory/handles.h"
#include "tests/cuda_runtime/fake_cuda.h"
#include "tests/support/matchers.h"

namespace spexd::testing {
namespace {

class StreamOrderTest : public ::testing::Test {
 protected:
  StreamOrderTest() {
    FakeCuda::Get().Reset({{}});
    for (cuda::Stream* stream : {&first_, &second_}) EXPECT_EQ(cuda::MakeStream(0, stream), cudaSuccess);
    EXPECT_EQ(cuda::MakeEvent(&event_), cudaSuccess);
  }
  void Fill(const cuda::Stream& stream, int begin, int end) {
    EXPECT_EQ(cudaMemsetAsync(memory_ + begin, 1, static_cast<size_t>(end - begin), stream.get()),
              cudaSuccess);
  }
  void CopyOut(const cuda::Stream& stream, int begin, int end) {
    EXPECT_EQ(cudaMemcpyAsync(host_, memory_ + begin, static_cast<size_t>(end - begin),
                              cudaMemcpyDeviceToHost, stream.get()),
              cudaSuccess);
  }
  void Record(const cuda::Stream& stream) {
    EXPECT_EQ(cudaEventRecord(event_.get(), stream.get()), cudaSuccess);
  }
  void Wait(const cuda::Stream& stream) {
    EXPECT_EQ(cudaStreamWaitEvent(stream.get(), event_.get(), 0), cudaSuccess);
  }

  alignas(8) char memory_[4096] = {};
  char host_[4096];
  cuda::Stream first_, second_;
  cuda::Event event_;
  StreamOrder order_{memory_, sizeof(memory_)};
};

TEST_F(StreamOrderTest, TellsOfTwoWriters) {
  Fill(first_, 0, 1000);
  Fill(second_, 992, 2000);
  EXPECT_THAT(order_.races(), ElementsAre("cudaMemsetAsync on stream 0 and cudaMemsetAsync on stream 1: both "
                                          "write 8 bytes, from byte 992 on"));
  EXPECT_EQ(order_.operations(), 2);
  EXPECT_EQ(order_.unordered(), 1);
}

TEST_F(StreamOrderTest, TellsOfAReaderAndAWriterWhicheverCameFirst) {
  CopyOut(first_, 0, 100);
  Fill(second_, 0, 100);
  CopyOut(first_, 0, 100);
  EXPECT_THAT(order_.races(), ElementsAre(HasSubstr("the second writes what the first reads, 100 bytes"),
                                          HasSubstr("the second reads what the first writes, 100 bytes")));
}

TEST_F(StreamOrderTest, LetsReadersAndWritersOfOtherPlacesBe) {
  CopyOut(first_, 0, 100);
  CopyOut(second_, 0, 100);
  Fill(first_, 200, 300);
  Fill(second_, 300, 400);
  EXPECT_THAT(order_.races(), IsEmpty());
  EXPECT_EQ(order_.unordered(), 4);
}

TEST_F(StreamOrderTest, KnowsTheOrderOfAStreamAndOfAnEvent) {
  Fill(first_, 0, 100);
  CopyOut(first_, 0, 100);
  Record(first_);
  Wait(second_);
  Fill(second_, 0, 100);
  EXPECT_THAT(order_.races(), IsEmpty());
  EXPECT_EQ(order_.unordered(), 0);
}

TEST_F(StreamOrderTest, KnowsThatAnEventSaysNothingOfLaterWork) {
  Record(first_);
  Fill(first_, 0, 100);
  Wait(second_);
  Fill(second_, 0, 100);
  EXPECT_THAT(order_.races(), ElementsAre(HasSubstr("both write")));
}

TEST_F(StreamOrderTest, FollowsEventsOverSeveralStreams) {
  cuda::Stream third;
  ASSERT_EQ(cuda::MakeStream(0, &third), cudaSuccess);
  Fill(first_, 0, 100);
  Record(first_);
  Wait(second_);
  Record(second_);
  Wait(third);
  CopyOut(third, 0, 100);
  EXPECT_THAT(order_.races(), IsEmpty());
}

TEST_F(StreamOrderTest, TellsOnceOfEachTwoNames) {
  Fill(first_, 0, 100);
  for (int k = 0; k < 3; ++k) Fill(second_, 0, 100);
  EXPECT_THAT(order_.races(), ElementsAre(AllOf(HasSubstr("both write"), HasSubstr("100 bytes"))));
  EXPECT_EQ(order_.unordered(), 3);
}

}  // namespace
}  // namespace spexd::testing
