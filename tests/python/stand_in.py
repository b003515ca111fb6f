"""A proxy between the client and a real server that spoils messages, as a network may."""

import concurrent.futures

import grpc

from spexd.v1 import analysis_pb2_grpc, extraction_pb2_grpc, jobs_pb2_grpc


class StandIn(
    analysis_pb2_grpc.AnalysisServicer, extraction_pb2_grpc.ExtractionServicer, jobs_pb2_grpc.JobsServicer
):
    """Forwards Extract, Analyse, Watch and GetJob. ``spoil(call, number, event)`` sees every event of a call and may
    change it, or return False, which ends the call with UNAVAILABLE."""

    def __init__(self, address, spoil):
        self._channel = grpc.insecure_channel(address)
        self._analysis = analysis_pb2_grpc.AnalysisStub(self._channel)
        self._extraction = extraction_pb2_grpc.ExtractionStub(self._channel)
        self._jobs = jobs_pb2_grpc.JobsStub(self._channel)
        self._spoil = spoil
        self.calls = []  # requests of Watch, or the number of the call
        self._server = grpc.server(concurrent.futures.ThreadPoolExecutor(4))
        analysis_pb2_grpc.add_AnalysisServicer_to_server(self, self._server)
        extraction_pb2_grpc.add_ExtractionServicer_to_server(self, self._server)
        jobs_pb2_grpc.add_JobsServicer_to_server(self, self._server)
        self.address = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"
        self._server.start()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._server.stop(None).wait()
        self._channel.close()

    def leave(self, release):
        """Refuses new calls, releases those in progress, and waits for their end. A call that arrives in between
        would hang until the server stops waiting."""
        left = self._server.stop(60)
        release()
        left.wait()

    def Extract(self, requests, context):
        self.calls.append(len(self.calls))
        yield from self._forward(self._extraction.Extract(requests), context)

    def Analyse(self, requests, context):
        self.calls.append(len(self.calls))
        yield from self._forward(self._analysis.Analyse(requests), context)

    def Watch(self, request, context):
        self.calls.append(request.after)
        yield from self._forward(self._jobs.Watch(request), context)

    def GetJob(self, request, context):
        return self._jobs.GetJob(request)

    def _forward(self, events, context):
        call = len(self.calls)
        for number, event in enumerate(events):
            if self._spoil(call, number, event) is False:
                context.abort(grpc.StatusCode.UNAVAILABLE, "the network broke")
            yield event
