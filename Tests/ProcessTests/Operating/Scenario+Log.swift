#if os(Linux)
    import Conflux
    import Foundation
    import Testing

    /// The sections about the log: to back it up, restore it, make room, replace it and move it.
    extension Scenario {
        func makeBackup(_ cluster: Operated) async throws {
            let section = cluster.anchor
            try cluster.begin("backup")
            try await cluster.run("sudo conflux backup /backup/2026-05-01 --data /var/lib/conflux")
            try cluster.begin(section)
        }

        /// The timer's backup, and what an operator looks at after it.
        private func runTimer(_ cluster: Operated) async throws {
            try await cluster.run(
                "echo 'BACKUP_FOLDER=/backup/conflux' | sudo tee -a /etc/conflux/backup.env")
            try await cluster.run("sudo systemctl start conflux-backup")
            let folder = try cluster.machine(Machine.sequencer).path("/backup/conflux")
            let names = try FileManager.default.contentsOfDirectory(atPath: folder)
            let made = names.filter { $0.wholeMatch(of: /\d{8}T\d{6}Z/) != nil }
            #expect(made.count == 1, "\(names)")
        }

        func backup(_ cluster: Operated) async throws {
            try await runTimer(cluster)
            try await cluster.run("sudo conflux backup /backup/2026-05-01 --data /var/lib/conflux")
            try await cluster.run("sudo cp -a /etc/conflux /backup/etc-conflux")
            let whole = try await cluster.run("sudo conflux log --verify /backup/2026-05-01")
            #expect(whole.output.contains { $0.hasPrefix("intact: entries 1 to") })
            try await cluster.run("sudo scp -r /backup/2026-05-01 10.0.0.9:/backup/")
            try await cluster.run(
                "sudo conflux log --verify /backup/2026-05-01", on: "10.0.0.9")
            try await keepAnchor(cluster)
            try await cluster.run("sudo chmod -R go= /var/lib/conflux/")
        }

        private func keepAnchor(_ cluster: Operated) async throws {
            try await cluster.run(
                "sudo conflux log --verify /backup/2026-05-01 | sed -n 's/^anchor: //p' "
                    + "> 2026-05-01.anchor")
            try await cluster.run("scp 2026-05-01.anchor 10.0.0.9:")
        }

        func changedLog(_ cluster: Operated) async throws {
            try await makeBackup(cluster)
            try cluster.begin("backup")
            try await keepAnchor(cluster)
            try cluster.begin(rawValue)
            try await cluster.dispatch("counter", "increment")
            try await cluster.run("scp 10.0.0.9:2026-05-01.anchor .")
            let expecting = #"--expect "$(cat 2026-05-01.anchor)""#
            let log = "sudo conflux log --verify /var/lib/conflux \(expecting)"
            let whole = try await cluster.run(log)
            #expect(whole.output.contains { $0.hasPrefix("intact, with the anchor of entry ") })
            // An older copy, as if it had replaced the log.
            try await cluster.run("sudo conflux log --verify /backup/2026-05-01 \(expecting)")
            let anchor = cluster.site.path("\(Machine.sequencer)/home/2026-05-01.anchor")
            let newer = try #require(
                try await cluster.machine(Machine.sequencer).shell(
                    "conflux log --verify \(cluster.machine(Machine.sequencer).path("/var/lib/conflux"))"
                ).output.last { $0.hasPrefix("anchor: ") })
            try Data(newer.dropFirst("anchor: ".count).utf8).write(to: URL(filePath: anchor))
            let older = try await cluster.run(
                "sudo conflux log --verify /backup/2026-05-01 \(expecting)", code: 74)
            #expect(older.message.contains("the log has lost its end"), "\(older.message)")
        }

        func restore(_ cluster: Operated) async throws {
            try await makeBackup(cluster)
            try await cluster.run("sudo systemctl stop conflux-sequencer")
            try await cluster.run("sudo mkdir /var/lib/conflux/aside")
            try await cluster.run(
                "sudo find /var/lib/conflux/ -maxdepth 1 -type f "
                    + "-exec mv {} /var/lib/conflux/aside/ ';'")
            try await cluster.run("sudo conflux restore /backup/2026-05-01 --data /var/lib/conflux")
            try await cluster.run("sudo systemctl start conflux-sequencer")
            try await cluster.run("conflux status", until: areLive(["alpha", "beta"]))
            try await cluster.run("conflux dispatch counter increment --wait applied")
        }

        /// Restores without stopping the sequencer, which keeps the log open.
        func restoreUnstopped(_ cluster: Operated) async throws {
            try await makeBackup(cluster)
            let former = try #require(cluster.sequencer).child
            try await cluster.run("sudo mkdir /var/lib/conflux/aside")
            try await cluster.run(
                "sudo find /var/lib/conflux/ -maxdepth 1 -type f "
                    + "-exec mv {} /var/lib/conflux/aside/ ';'")
            try await cluster.run("sudo conflux restore /backup/2026-05-01 --data /var/lib/conflux")
            let refused = try await cluster.run(
                "conflux dispatch counter increment --wait applied", code: nil)
            #expect(refused.end != .exited(0) && refused.output.isEmpty, "\(refused)")
            #expect(try await former.end() == .exited(74))
            #expect(former.report.contains("was moved, removed, replaced"), "\(former.report)")
            try await cluster.run("sudo systemctl stop conflux-sequencer")
            try await cluster.run("sudo systemctl start conflux-sequencer")
            try await cluster.run("conflux status", until: areLive(["alpha", "beta"]))
            try await cluster.run("conflux dispatch counter increment --wait applied")
            try await expectCount(1, cluster)
        }

        func diskFull(_ cluster: Operated) async throws {
            guard let disk = try await SmallDisk.mount(on: cluster.site, mebibytes: 26) else {
                print("disk full: with room on the disk, since this user may not mount")
                try await makeRoom(cluster) {}
                return try await keepLess(cluster)
            }
            do {
                try await cluster.moveLog(to: "\(disk.path)/log")
                try await fill(disk, cluster)
                try await keepLess(cluster)
            } catch {
                try await disk.unmount()
                throw error
            }
            await cluster.site.end()
            try await disk.unmount()
        }

        /// Fills the disk, so that the operator has to make room.
        func fill(_ disk: SmallDisk, _ cluster: Operated) async throws {
            let ballast = "\(disk.path)/ballast"
            // `cat` ends once the disk is full.
            _ = try await cluster.machine(Machine.sequencer).shell("cat /dev/zero > \(ballast)")
            let load = try cluster.startLoad()
            let sequencer = try #require(cluster.sequencer).child
            _ = try await cluster.site.event("logFailed", of: sequencer)
            try await load.destroy()
            try await makeRoom(cluster) { try FileManager.default.removeItem(atPath: ballast) }
        }

        func makeRoom(_ cluster: Operated, _ clean: () throws -> Void) async throws {
            try await cluster.run("df -h /var/lib/conflux/")
            try await cluster.run("sudo du -sh /var/lib/conflux/")
            try clean()
            try await cluster.run(
                "conflux dispatch counter increment", until: { $0.contains("committed as entry") })
        }

        func keepLess(_ cluster: Operated) async throws {
            try await cluster.run(
                "sudo sed -i 's/^OPTIONS=.*/& --keep-bytes 64MiB/' /etc/conflux/sequencer.env")
            try await cluster.run("sudo systemctl restart conflux-sequencer")
            let status = try await cluster.run(
                "conflux status", until: areLive(["alpha", "beta"]))
            #expect(status.contains("SNAPSHOT"))
            let dropped = try await cluster.run(
                "conflux drop document/old", with: ["document/old": "document/shared"])
            #expect(dropped.output.contains { $0.contains("document/shared") })
        }

        func diskLost(_ cluster: Operated) async throws {
            try await makeBackup(cluster)
            try await cluster.dispatch("counter", "increment")
            try await expectCount(1, cluster)
            cluster.sequencer?.child.signal(SIGKILL)
            try await cluster.run("sudo systemctl stop conflux-sequencer")
            try await cluster.run("sudo conflux log --verify /var/lib/conflux")
            try FileManager.default.removeItem(
                atPath: try cluster.machine(Machine.sequencer).path("/var/lib/conflux"))
            try await cluster.run("sudo conflux restore /backup/2026-05-01 --data /var/lib/conflux")
            try await cluster.run("sudo systemctl start conflux-sequencer")
            for worker in cluster.workers.values {
                _ = try await cluster.site.event("historyLost", of: worker)
            }
            try await cluster.run("conflux status", until: areLive(["alpha", "beta"]))
        }

        func upgrade(_ cluster: Operated) async throws {
            try await cluster.run(
                "sudo conflux backup /backup/before-upgrade --data /var/lib/conflux")
            try await cluster.run("sudo systemctl restart conflux-sequencer")
            for worker in cluster.workers.values {
                _ = try await cluster.site.event("reconnected", of: worker)
            }
            try await cluster.run(
                "sudo systemctl restart conflux-worker@alpha", on: Machine.alpha)
            try await cluster.run("conflux status", until: areLive(["alpha", "beta"]))
            try await cluster.run("conflux --version")
        }

        func moving(_ cluster: Operated) async throws {
            try await cluster.dispatch("counter", "increment")
            try await cluster.run("sudo systemctl disable --now conflux-sequencer")
            try await cluster.run("sudo conflux backup /backup/move --data /var/lib/conflux")
            try await cluster.run("sudo scp -r /backup/move 10.0.0.8:/backup/")
            try await cluster.run(
                "sudo scp /etc/conflux/sequencer.secret /etc/conflux/sequencer.public "
                    + "/etc/conflux/authorized /etc/conflux/sequencer.env 10.0.0.8:/etc/conflux/")
            let other = Machine.other
            try await cluster.run(
                "sudo conflux restore /backup/move --data /var/lib/conflux", on: other)
            try await cluster.run("sudo systemctl enable --now conflux-sequencer", on: other)
            for (name, host) in [("alpha", Machine.alpha), ("beta", Machine.beta)] {
                try await cluster.run(
                    "echo 'CONFLUX_CONNECT=tcp://10.0.0.8:7400' "
                        + "| sudo tee -a /etc/conflux/worker.env", on: host)
                try await cluster.run(
                    "sudo systemctl restart conflux-worker@alpha", on: host, with: ["alpha": name])
            }
            try await cluster.run("export CONFLUX_CONNECT=tcp://10.0.0.8:7400")
            try await cluster.run("conflux status", until: areLive(["alpha", "beta"]))
            for worker in cluster.workers.values {
                #expect(!worker.output.soFar.contains { $0.contains("historyLost") })
            }
            // The new log has the entries of the old one.
            try await expectCount(1, cluster)
        }

        /// Waits until both workers have this count.
        func expectCount(_ count: Int, _ cluster: Operated) async throws {
            let section = cluster.anchor
            try cluster.begin("first-set-up")
            try await cluster.run("conflux observe counter", until: isCount(count))
            try cluster.begin(section)
        }
    }
#endif
