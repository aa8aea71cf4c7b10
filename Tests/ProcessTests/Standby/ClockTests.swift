#if os(Linux)
    import EtcdCluster
    import Foundation
    import Testing

    extension ProcessTests {
        /// Machines whose wall clocks are wrong.
        @Suite(
            .serialized,
            .enabled(if: EtcdCluster.isInstalled && Deployment.has("cc"), "no etcd, or no compiler")
        )
        struct ClockTests {
            /// A library that is loaded before the C library, and shifts the wall clock of a program.
            private static let shim = """
                #define _GNU_SOURCE
                #include <dlfcn.h>
                #include <stdlib.h>
                #include <sys/time.h>
                #include <time.h>

                static long offset(void) { return atol(getenv("WRONG_CLOCK_SECONDS")); }

                int clock_gettime(clockid_t clock, struct timespec *result) {
                    int (*real)(clockid_t, struct timespec *) = dlsym(RTLD_NEXT, "clock_gettime");
                    int code = real(clock, result);
                    if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)
                        result->tv_sec += offset();
                    return code;
                }

                int gettimeofday(struct timeval *restrict result, void *restrict zone) {
                    struct timespec now;
                    clock_gettime(CLOCK_REALTIME, &now);
                    result->tv_sec = now.tv_sec;
                    result->tv_usec = now.tv_nsec / 1000;
                    return 0;
                }

                time_t time(time_t *result) {
                    struct timespec now;
                    clock_gettime(CLOCK_REALTIME, &now);
                    if (result) *result = now.tv_sec;
                    return now.tv_sec;
                }

                """

            /// Starts programs with a clock that is wrong by a number of seconds.
            private func withClock<Result>(
                wrongBy seconds: Int, _ site: Site, _ body: () async throws -> Result
            ) async throws -> Result {
                let library = site.path("wrong-clock.so")
                if !FileManager.default.fileExists(atPath: library) {
                    let source = try site.write(Self.shim, to: "wrong-clock.c")
                    let outcome = try await Deployment.run(
                        "cc", "-shared", "-fPIC", "-o", library, source, "-ldl")
                    try #require(outcome.end == .exited(0), "\(outcome.message)")
                }
                let prefix = [
                    "/usr/bin/env", "LD_PRELOAD=\(library)", "WRONG_CLOCK_SECONDS=\(seconds)",
                ]
                return try await Site.$prefix.withValue(prefix, operation: body)
            }

            @Test func `sequencers whose clocks differ by two hours take over from each other`()
                async throws
            {
                let place = try EtcdCluster.shared.get().address("conflux/\(UUID().uuidString)")
                var isChecked = false
                try await expectOneHistory(of: { site in
                    let first = try await withClock(wrongBy: 3_600, site) {
                        try await site.sequencer(log: place)
                    }
                    let second = try await withClock(wrongBy: -3_600, site) {
                        try await site.standby(log: place)
                    }
                    return SequencerGroup(site: site, members: [first, second])
                }) { group, _ in
                    let site = group.site
                    let wall = UInt64(Date().timeIntervalSince1970 * 1_000_000_000)
                    let hour: UInt64 = 3_600 * 1_000_000_000
                    // Otherwise the clock would not be wrong at all.
                    #expect(try await timestamp(site, group) > wall + hour / 2)
                    let marks = group.marks
                    group.members[0].child.signal(SIGKILL)
                    _ = try await group.next("ready", of: [1], behind: marks)
                    #expect(try await timestamp(site, group) > wall + hour / 2)
                    group.members[0] = try await withClock(wrongBy: 3_600, site) {
                        try await site.standby(log: place, at: group.members[0])
                    }
                    try await site.untilStandsBy(group.members[0].address, at: group.addresses)
                    let handover = try await site.run("handover", "--connect", group.addresses)
                    #expect(handover.end == .exited(0), "\(handover.message)")
                    isChecked = true
                }
                #expect(isChecked)
            }

            /// The timestamp of an action that is dispatched now, in nanoseconds since 1970.
            private func timestamp(_ site: Site, _ group: SequencerGroup) async throws -> UInt64 {
                let last = try await site.dispatch("increment", to: "counter", at: group.addresses)
                let log = try await site.run(
                    "log", "--json", "--connect", group.addresses, "--from", "\(last)", "--to",
                    "\(last)")
                return try LogLine(try #require(log.output.first)).timestamp
            }
        }
    }
#endif
