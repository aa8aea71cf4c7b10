import CSQLite
import ConfluxVocabulary

/// Reads commits, with their hashes, from the files of a log's entries, while another object or program appends. One
/// thread at a time owns it.
final class EntryReader {
    /// The distance between the places that are remembered in a file.
    private static let placeBytes = 1 << 18

    private let files: EntryFiles
    /// Reads the database's list of the files.
    private let list: () throws(DatabaseFailure) -> [EntryFileRecord]
    /// The first numbers of the files, when the list was last read.
    private var firsts: [SequenceNumber] = []
    private var window: EntryWindow?
    private let pool = BufferPool()
    /// Where commits begin, by the first number of their file, ascending.
    private var places: [SequenceNumber: [Place]] = [:]
    /// Where the last read stopped.
    private var stop: Place?

    /// Where a commit begins.
    private struct Place {
        /// The first number of the file.
        var file: SequenceNumber
        var offset: Int
        /// The commit's first number.
        var next: SequenceNumber
    }

    /// - Parameters:
    ///   - files: The files.
    ///   - list: Reads the database's list of them.
    init(_ files: EntryFiles, list: @escaping () throws(DatabaseFailure) -> [EntryFileRecord]) {
        self.files = files
        self.list = list
    }

    /// Where the entries end, once each file was checked; nil if there are none.
    ///
    /// - Parameters:
    ///   - meta: What the database said of them before.
    ///   - folder: The log's folder.
    /// - Returns: The end.
    /// - Throws: `damaged` if a file or the end is lost, or entries are there that the database does not know;
    ///   `unusableFolder`, `failed`.
    func end(_ meta: SQLiteMeta, in folder: String) throws(LogError) -> EntryEnd? {
        _ = try files.strays(unlike: list)
        let attempt = "Reading the end of the log in \(folder)"
        var end: EntryEnd?
        // An owner who appends or discards meanwhile can hide the last commit from this reader, but not again and again.
        for round in 1...3 where end?.last == nil {
            guard let last = try files.checked(list).last else { break }
            do throws(LogError) {
                end = try SQLiteFormat.reading(attempt) { () throws(DatabaseFailure) in
                    try EntryEnd.find(in: EntryWindow(last.first, of: files))
                }
            } catch {
                let isListed = try SQLiteFormat.reading(attempt, list).contains(last)
                if isListed || round == 3 { throw error }
            }
        }
        if let end, end.last == nil { throw .endLost(in: folder) }
        try meta.check(end?.last ?? SequenceNumber(meta.floor.rawValue - 1), in: folder)
        return end
    }

    /// Reads commits like `LogReader.read(from:through:limitBytes:)`; `from` is the floor or above.
    ///
    /// - Throws: `damaged`, `failed`.
    func read(
        from: SequenceNumber, through last: SequenceNumber, limitBytes: Int
    ) throws(LogError) -> [ChainedCommit] {
        // What is remembered may be outdated: files come and go, and a new owner may have cut the end.
        if !firsts.isEmpty, case .success(.success(let commits)) = attempt(from, last, limitBytes) {
            return commits
        }
        firsts = []
        switch attempt(from, last, limitBytes) {
        case .success(let found): return try found.get()
        case .failure(let failure):
            throw SQLiteFormat.readError(failure, "Reading the log from entry \(from)")
        }
    }

    private func attempt(
        _ from: SequenceNumber, _ last: SequenceNumber, _ limitBytes: Int
    ) -> Result<Result<[ChainedCommit], LogError>, DatabaseFailure> {
        do throws(DatabaseFailure) {
            if firsts.isEmpty {
                firsts = try list().map(\.first)
                window = nil
                places = [:]
                stop = nil
            }
            window?.renew()
            return .success(try scan(from, last, limitBytes))
        } catch {
            return .failure(error)
        }
    }

    private func scan(
        _ from: SequenceNumber, _ last: SequenceNumber, _ limitBytes: Int
    ) throws(DatabaseFailure) -> Result<[ChainedCommit], LogError> {
        guard var place = start(from) else {
            let end = firsts.first.map { SequenceNumber($0.rawValue - 1) } ?? last
            return .failure(.damaged(from, min(end, last), "missing"))
        }
        var commits: [ChainedCommit] = []
        var total = 0
        var isListed = false
        while place.next <= last {
            if let window = try open(place.file),
                let header = try window.header(at: place.offset), header.first == place.next
            {
                if header.last >= from {
                    total += header.length
                    if !commits.isEmpty, total > limitBytes { break }
                    guard let commit = try window.commit(header, at: place.offset) else {
                        guard commits.isEmpty else { break }
                        return .failure(
                            .damaged(
                                place.next, header.last,
                                fault ?? "its bytes are not those that were written"))
                    }
                    commits.append(commit)
                }
                place.offset += header.size
                place.next = header.last.next
                remember(place)
                continue
            }
            if let next = firsts.first(where: { $0 > place.file }), next == place.next {
                place = Place(file: next, offset: 0, next: next)
                continue
            }
            // Perhaps the owner has begun another file.
            if !isListed {
                firsts = try list().map(\.first)
                isListed = true
                continue
            }
            guard commits.isEmpty else { break }
            let found = try search(behind: place)
            // What is missing before `from` is not asked for.
            if let found, found.next <= from {
                place = found
                continue
            }
            let end = found.map { SequenceNumber($0.next.rawValue - 1) } ?? last
            let reason = if let fault { fault } else { try absence(of: place.file) }
            return .failure(.damaged(place.next, min(end, last), reason))
        }
        stop = place
        return .success(commits)
    }

    private var fault: String? { window?.failure.map { "the disk says \"\($0.words)\" there" } }

    private func absence(of file: SequenceNumber) throws(DatabaseFailure) -> String {
        try open(file) == nil ? "missing, like the file \(files.path(file))" : "missing"
    }

    /// The nearest known place at or before a number.
    private func start(_ from: SequenceNumber) -> Place? {
        guard let file = firsts.last(where: { $0 <= from }) else { return nil }
        var place = Place(file: file, offset: 0, next: file)
        if let known = places[file]?.last(where: { $0.next <= from }) { place = known }
        if let stop, stop.file == file, stop.next <= from, stop.offset > place.offset {
            return stop
        }
        return place
    }

    private func remember(_ place: Place) {
        let known = places[place.file]?.last?.offset ?? 0
        guard place.offset - known >= Self.placeBytes else { return }
        places[place.file, default: []].append(place)
    }

    /// The next commit that can be found.
    private func search(behind place: Place) throws(DatabaseFailure) -> Place? {
        let window = try open(place.file)
        var offset = place.offset
        while let found = try window?.header(from: offset) {
            if found.header.first > place.next {
                return Place(file: place.file, offset: found.offset, next: found.header.first)
            }
            offset = found.offset + found.header.size
        }
        return firsts.first { $0 > place.file && $0 > place.next }
            .map { Place(file: $0, offset: 0, next: $0) }
    }

    /// nil if the file is missing.
    private func open(_ first: SequenceNumber) throws(DatabaseFailure) -> EntryWindow? {
        if let window, window.first == first { return window }
        window = try files.openIfThere(first).map {
            EntryWindow(first, of: files, in: $0, skippingErrors: true, pool: pool)
        }
        return window
    }
}
