import Conflux

extension OpenAPI {
    /// The paths of the console, beside those of stores.
    static var consolePaths: JSONObject {
        [
            "/api/v1/status": [
                "get": operation(
                    "status", "What the sequencer and the gateway say of themselves.",
                    "It is up to a second old, and the same for everybody who asks meanwhile.",
                    parameters: [], answer("The status.", ["type": "object"]))
            ],
            "/api/v1/entries": [
                "get": operation(
                    "entries", "The entries of the log, as they are ordered.",
                    "Server-sent events named entries. The data of each is a JSON object with some entries, the numbers from which and through which they were chosen, and how many were left out.",
                    parameters: [
                        parameter(
                            "target", in: "query",
                            "Only entries for this store, or for every store of a state.",
                            [
                                "type": "string",
                                "pattern": "^[a-z0-9._-]{1,64}(/([a-z0-9._-]{1,64}|\\*))?$",
                            ])
                    ],
                    answer("The events.", ["type": "object"], as: "text/event-stream"))
            ],
            "/api/v1/decisions": [
                "post": operation(
                    "decide", "Freeze, thaw or drop a store, skip an entry, or hand over.",
                    "It needs a gateway with a token.", parameters: [timeout],
                    body: [
                        "required": true, "description": "The decision.",
                        "content": content(["type": "object"]),
                    ], answer("What was decided.", ["type": "object"]))
            ],
        ]
    }
}
