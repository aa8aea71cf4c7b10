import ConfluxVocabulary

// The extensions of messages in version 1: the shapes of a state's actions, and what holds up a batch. A peer that
// does not know them skips them. Then actions are not checked before they are sent, and wait without a reason.

extension Frame {
    /// The tag of the extension that has, or asks for, the shapes of a state's actions.
    static let shapesTag: UInt16 = 1
    /// The tag of the extension that says what holds up a batch.
    static let heldUpTag: UInt16 = 3
}

extension FrameWriter {
    /// Writes an extension.
    mutating func appendExtension(
        _ tag: UInt16 = Frame.shapesTag, _ body: (inout FrameWriter) -> Void
    ) {
        fixed(tag)
        let lengthOffset = bytes.count
        fixed(UInt32(0))
        body(&self)
        patch(UInt32(bytes.count - lengthOffset - 4), at: lengthOffset)
    }

    /// Writes the shapes that a node sends, with one extension for each state.
    mutating func shapes(of bridges: [StateBridge]) {
        for bridge in bridges {
            guard let shapes = bridge.shapes else { continue }
            appendExtension { writer in
                bridge.state.write(to: &writer)
                writer.raw(shapes)
            }
        }
    }

    /// Writes what holds up a batch.
    mutating func heldUp(_ message: String) {
        appendExtension(Frame.heldUpTag) { $0.text(message) }
    }

    /// Writes a request for the shapes of a state.
    mutating func shapes(askedOf state: Name) {
        appendExtension { state.write(to: &$0) }
    }

    /// Writes the shapes in an answer, with one extension for each version.
    mutating func shapes(_ known: [ActionShapes]) {
        for shapes in known {
            appendExtension { writer in
                writer.fixed(shapes.schemaVersion)
                writer.raw(shapes.json)
            }
        }
    }
}

extension FrameReader {
    /// Reads what holds up a batch; nil if nothing says so.
    mutating func readHeldUp() throws(WireError) -> String? {
        var message: String?
        while let (tag, content) = try nextExtension() {
            guard tag == Frame.heldUpTag else { continue }
            var content = content
            message = try content.text("what holds up a batch")
        }
        return message
    }

    /// Reads the extensions that fill the rest, and skips all but those with shapes.
    private mutating func forEachShapes(
        _ body: (inout FrameReader) throws(WireError) -> Void
    ) throws(WireError) {
        while let (tag, content) = try nextExtension() {
            guard tag == Frame.shapesTag else { continue }
            var content = content
            try body(&content)
        }
    }

    /// Reads the shapes of the states that a hello names, and the versions of the stores. Shapes of other states are
    /// skipped.
    mutating func readExtensions(
        of bridges: inout [StateBridge], _ hosted: inout [HostedStore]
    ) throws(WireError) {
        var told: [Name: Bytes] = [:]
        while let (tag, content) = try nextExtension() {
            var content = content
            switch tag {
            case Frame.shapesTag: told[try Name(reading: &content)] = content.cutRest()
            case Frame.versionsTag:
                for index in hosted.indices {
                    hosted[index].versions = try SupportedVersions(
                        reading: &content, newest: hosted[index].versions.newest)
                }
            default: break
            }
        }
        guard !told.isEmpty else { return }
        for index in bridges.indices { bridges[index].shapes = told[bridges[index].state] }
    }

    /// Reads the shapes that an open has for the state that it bridges, or the versions of the store.
    mutating func readExtensions(of open: inout Open) throws(WireError) {
        while let (tag, content) = try nextExtension() {
            var content = content
            switch (tag, open.subject) {
            case (Frame.shapesTag, .state(let state)):
                if try Name(reading: &content) == state { open.shapes = content.cutRest() }
            case (Frame.versionsTag, _):
                open.versions = try SupportedVersions(
                    reading: &content, newest: open.versions.newest)
            default: break
            }
        }
    }

    /// Reads the digest of a migrated state; nil if there is none.
    mutating func readMigrated() throws(WireError) -> Digest? {
        var digest: Digest?
        while let (tag, content) = try nextExtension() {
            guard tag == Frame.migratedTag else { continue }
            var content = content
            digest = try Digest(reading: &content)
        }
        return digest
    }

    /// Reads the state whose shapes are asked for; nil if none are.
    mutating func readShapesAsked() throws(WireError) -> Name? {
        var state: Name?
        try forEachShapes { (content) throws(WireError) in state = try Name(reading: &content) }
        return state
    }

    /// Reads the shapes in an answer.
    mutating func readShapes() throws(WireError) -> [ActionShapes] {
        var known: [ActionShapes] = []
        try forEachShapes { (content) throws(WireError) in
            let version = try content.fixed(UInt32.self, "a schema version")
            known.append(ActionShapes(schemaVersion: version, json: content.cutRest()))
        }
        return known
    }
}
