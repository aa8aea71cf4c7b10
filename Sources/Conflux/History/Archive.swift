import ConfluxSystem
import Dispatch
import Foundation
import Synchronization

/// A folder in which stores keep their values from one run of the program to the next.
///
/// ```swift
/// let archive = try Archive(folder: folder, space: "settings")
/// let kept = try archive.keep(settings, as: "window")     // as it was saved last
/// ```
public struct Archive: Sendable {
    private let folder: URL
    private let space: String

    /// The most characters that a name may have.
    static let nameLengthMax = 64

    /// Opens an archive, making the folder if there is none.
    ///
    /// Nobody but its owner may read a folder or a file that it makes.
    ///
    /// - Parameters:
    ///   - folder: Where the files are.
    ///   - space: What keeps the names of one use of the folder apart from those of another: 1 to 64 of
    ///     the characters `A-Z a-z 0-9 . _ -`, not of dots alone.
    /// - Throws: ``StoreError``: `invalidName`; `unreadable` when the folder can't be made.
    public init(folder: URL, space: String = "1") throws(StoreError) {
        try Self.check(space)
        do throws(SystemFailure) {
            try Folder.make(folder.path)
        } catch {
            let reason = error.reason(advice: "Give a folder that this user may make and write.")
            throw StoreError(
                .unreadable, "The folder \(folder.path) can't be made: \(reason)", error)
        }
        self.folder = folder
        self.space = space
    }

    private static func check(_ name: String) throws(StoreError) {
        let isSound = name.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "_"),
                UInt8(ascii: "-"):
                true
            default: false
            }
        }
        guard isSound, (1...nameLengthMax).contains(name.utf8.count),
            !name.allSatisfy({ $0 == "." })
        else {
            throw StoreError(
                .invalidName,
                """
                "\(name)" is not a name for an archive: use 1 to \(nameLengthMax) of the \
                characters A-Z a-z 0-9 . _ -, and not dots alone.
                """)
        }
    }

    /// Restores a model's store from the last saved value, and saves it whenever it has changed and then
    /// been idle.
    ///
    /// What an older program saved is migrated (``Model/migrate(_:from:)``). The file is read on this
    /// thread; the store gets the value in its lane, as a change that notifies observers: before this
    /// returns if the store is on `.immediate` and idle, and otherwise soon after.
    ///
    /// - Parameters:
    ///   - store: The store, which no node replicates. It is not kept alive. When it is released, its last change
    ///     is saved.
    ///   - name: The value's name in this space, of the same characters. No other store may have
    ///     it.
    ///   - idle: How long the value must have stayed unchanged before it is saved.
    /// - Returns: A handle. Disposing or releasing it ends the keeping.
    /// - Throws: ``StoreError``: `invalidName`, `unreadable`, `damaged`, `incompatible`, `replicated`.
    ///   Then the store and the file are as they were.
    public func keep<Model: Conflux.Model>(
        _ store: ModelStore<Model>, as name: String, idle: Duration = .seconds(2)
    ) throws(StoreError) -> Archived {
        try keep(store, as: name, idle: idle, version: Model.schemaVersion) { bytes, version in
            try ModelState<Model>.snapshot(from: bytes, version: version)
        }
    }

    /// Restores a storage from the last saved value, and saves it whenever it has changed and then
    /// been idle.
    ///
    /// The storage gets the value in its lane, as a model's store does. Properties that the saved value
    /// lacks, such as those that were added since, stay as the storage has them. Properties that were removed
    /// are ignored. For any other change of the form, raise `version` and migrate:
    ///
    /// ```swift
    /// let kept = try archive.keep(window, as: "window", version: 2) { old, version in
    ///     struct First: Decodable { var width: Int }
    ///     return Window(size: Size(width: try old.decode(First.self).width))
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - storage: The storage. It is not kept alive; its last change is saved when it is released.
    ///   - name: The value's name in this space, of the same characters. No other store may have
    ///     it.
    ///   - idle: How long the value must have stayed unchanged before it is saved.
    ///   - version: The version of the value's form.
    ///   - migrate: Makes a present value from one that was saved with a lower version; it gets
    ///     that version, too. Without it, the old value is read as a present one. Called at most
    ///     once, before this returns.
    /// - Returns: A handle. Disposing or releasing it ends the keeping.
    /// - Throws: ``StoreError`` as for a model's store: `incompatible` if the saved value has a higher version
    ///   or can't be read as a present one, or if the migration throws.
    public func keep<Value: Codable>(
        _ storage: Storage<Value>, as name: String, idle: Duration = .seconds(2), version: Int = 1,
        migrate: ((_ old: SnapshotReader, _ version: Int) throws -> Value)? = nil
    ) throws(StoreError) -> Archived {
        try keep(storage, as: name, idle: idle, version: version) { bytes, saved in
            guard saved <= version else { throw NewerForm(saved: saved, known: version) }
            let reader = SnapshotReader(bytes)
            if let migrate, saved < version { return try migrate(reader, saved) }
            do throws(CodingFailure) {
                return try reader.decode(filling: storage.computed.state.content)
            } catch {
                throw ChangedForm(saved: saved, reason: error)
            }
        }
    }

    /// Says that the storage's value was saved in another form.
    private struct ChangedForm: Error, CustomStringConvertible {
        let saved: Int
        let reason: CodingFailure

        var description: String {
            """
            it was saved with version \(saved), in another form: \(reason). If this program's form is the right \
            one, keep it with version: \(saved + 1) and a migrate: that reads version \(saved)
            """
        }
    }

    /// Says that a newer program saved the storage's value.
    private struct NewerForm: Error, CustomStringConvertible {
        let saved: Int
        let known: Int

        var description: String {
            "it was saved with version \(saved), and this program knows \(known)"
        }
    }

    private func keep<S: ValueHolder>(
        _ store: Store<S>, as name: String, idle: Duration, version: Int,
        decode: ([UInt8], Int) throws -> S.Value
    ) throws(StoreError) -> Archived where S.Value: Encodable {
        try Self.check(name)
        if store.core.isRouted {
            throw StoreError(
                .replicated,
                """
                The store is replicated by a node, which keeps it in the log: it needs no archive.
                """)
        }
        let file = ArchiveFile(folder: folder, space: space, name: name)
        let state = store.computed.state._state
        var restored: S.Value?
        if let saved = try file.read() {
            do {
                restored = try decode(saved.bytes, saved.version)
            } catch {
                throw StoreError(
                    .incompatible,
                    """
                    \(saved.url.path) does not hold a \(S.Value.self) that this program can read: \
                    \(error). Run the program that wrote it, or move the file away to start afresh.
                    """, error)
            }
        }
        let archived = Archived(
            file: file, names: (space, name), version: version, idle: idle,
            count: { state.version }
        ) {
            let (value, count) = state.readVersion { $0 }
            return (try CanonicalCoder().encode(value), count)
        }
        let core = store.core
        let changes = LateDisposable()
        let token = core.whenEnded { [weak archived] in archived?.dispose() }
        archived.begin(isRestored: restored != nil) {
            changes.dispose()
            if let token { core.forgetClose(token) }
        }
        let begin: @Sendable () -> Void = { [weak archived, restored] in
            guard let archived, !archived.isDisposed else { return }
            if let restored { state.replace(restored) }
            // From here on everything is a change, also what observers dispatch in response.
            if restored != nil { archived.noteRestored() }
            changes.become(state.add(Observation()) { [weak archived] _ in archived?.changed() })
            // A value that changed before the keeping began has not been saved.
            archived.changed()
        }
        if restored == nil { core.run(begin) } else { core.runPastGate(begin) }
        return archived
    }
}

/// One store's connection to an ``Archive``.
///
/// It ends when it is disposed or released, and with its store. It then saves what has not been saved.
public final class Archived: Disposable, Sendable {
    private struct Content {
        var isEnabled = true
        var isDisposed = false
        /// How often the saved value had been changed; nil if nothing has been saved, and the most while the value
        /// is to be restored.
        var savedCount: UInt64?
        var lastChange = DispatchTime.now()
        /// Whether ``look()`` is scheduled.
        var isScheduled = false
        /// *Use*: called once, at the end.
        var atEnd: (@Sendable () -> Void)?
    }

    /// The name that keeps this use of the archive's folder apart.
    public let space: String
    /// What the value is called in that space.
    public let name: String

    private let state = Mutex(Content())
    private let file: ArchiveFile
    private let version: Int
    private let idle: Duration
    /// How often the value was changed.
    private let count: @Sendable () -> UInt64
    private let encode: @Sendable () throws -> (bytes: [UInt8], count: UInt64)
    /// Held during a write.
    private let writing = Mutex(())
    private let queue = DispatchQueue(label: "conflux.archive")
    private let results = Sink<Result<Void, StoreError>>()

    init(
        file: ArchiveFile, names: (space: String, name: String), version: Int, idle: Duration,
        count: @escaping @Sendable () -> UInt64,
        encode: @escaping @Sendable () throws -> (bytes: [UInt8], count: UInt64)
    ) {
        self.file = file
        (space, name) = names
        self.version = version
        self.idle = idle
        (self.count, self.encode) = (count, encode)
    }

    deinit {
        dispose()
    }

    /// Takes what is to be called at the end. Called once, before anything else.
    func begin(isRestored: Bool, _ end: @escaping @Sendable () -> Void) {
        state.withLock { state in
            state.atEnd = end
            if isRestored { state.savedCount = .max }
        }
    }

    /// Records that the value is the one in the file. Called in the lane.
    func noteRestored() {
        let count = count()
        state.withLock { $0.savedCount = count }
    }

    /// Whether changes are saved automatically. When it is switched on again, what has changed meanwhile is
    /// saved after the idle time.
    public var isEnabled: Bool {
        get { state.withLock { $0.isEnabled } }
        set {
            state.withLock { $0.isEnabled = newValue }
            if newValue { schedule(after: idle) }
        }
    }

    /// How each save ended. A failed one is tried again after the next change.
    ///
    /// Observers run on the thread that saved, holding no lock. After the idle time that is a queue
    /// of this object's own. Otherwise it is the thread that called ``save()`` or ``dispose()``,
    /// released this object, or ended the store. Saves on several threads may be reported in
    /// another order.
    public var saves: Signal<Result<Void, StoreError>> { results.signal }

    /// Saves the value as it is now, unless it is saved already.
    ///
    /// It is encoded on this thread, holding no lock. Several threads may do so at the same time: a value is
    /// never written over a newer one.
    ///
    /// - Throws: ``StoreError``: `unencodable`, `unwritable`. What was saved before is still there.
    public func save() throws(StoreError) {
        if let saved = state.withLock({ $0.savedCount }), saved >= count() { return }
        guard let result = encodeAndWrite() else { return }
        results.send(value: result)
        try result.get()
    }

    /// Writes the value, unless another thread has written this or a newer one.
    private func encodeAndWrite() -> Result<Void, StoreError>? {
        let (bytes, count): ([UInt8], UInt64)
        do {
            (bytes, count) = try encode()
        } catch {
            return .failure(
                StoreError(
                    .unencodable,
                    """
                    The value can't be encoded, and is not saved. Correct how its type encodes itself: \
                    \(error)
                    """, error))
        }
        return writing.withLock { _ in
            if let saved = state.withLock({ $0.savedCount }), saved >= count { return nil }
            do throws(StoreError) {
                try file.write(bytes, version: version)
                state.withLock { $0.savedCount = count }
                return .success(())
            } catch {
                return .failure(error)
            }
        }
    }

    /// Whether the keeping has ended.
    public var isDisposed: Bool { state.withLock { $0.isDisposed } }

    /// Ends the keeping, after a last save unless it is switched off. ``saves`` reports how that ended.
    public func dispose() {
        let (wasEnabled, end) = state.withLock { state in
            defer { (state.isDisposed, state.atEnd) = (true, nil) }
            return (state.isEnabled && !state.isDisposed, state.atEnd)
        }
        end?()
        if wasEnabled { saveChanges() }
    }

    /// Saves the value if it has changed. ``saves`` reports how that ended.
    private func saveChanges() {
        if count() > state.withLock({ $0.savedCount }) ?? 0 { _ = try? save() }
    }

    /// Has the value saved after the idle time, if it has changed.
    func changed() {
        state.withLock { $0.lastChange = .now() }
        schedule(after: idle)
    }

    private func schedule(after wait: Duration) {
        let isNew = state.withLock { state in
            guard state.isEnabled, !state.isDisposed, !state.isScheduled else { return false }
            state.isScheduled = true
            return true
        }
        guard isNew else { return }
        queue.asyncAfter(deadline: .now() + wait.dispatchInterval) { [weak self] in self?.look() }
    }

    /// Saves if it has been idle for long enough.
    private func look() {
        let rest = state.withLock { state -> Duration? in
            state.isScheduled = false
            guard state.isEnabled, !state.isDisposed else { return nil }
            let passed = DispatchTime.now().uptimeNanoseconds - state.lastChange.uptimeNanoseconds
            return idle - .nanoseconds(Int64(clamping: passed))
        }
        guard let rest else { return }
        if rest > .zero { return schedule(after: rest) }
        saveChanges()
    }
}
