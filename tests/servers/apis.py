"""The languages of the embedding providers: a request in, the texts it asks for out; rows in, the
provider's JSON out.

OpenAI (and everything compatible), Mistral and Voyage share a path and are told apart by the model;
then Gemini, Ollama and Bedrock's InvokeModel (Titan, Cohere). The limits are the providers' own,
and so are the words they refuse with. Where vectors come from and what is done to spoil them is
left to others."""

from __future__ import annotations

import base64
import json
import re
import struct
from collections.abc import Sequence
from typing import Any, NamedTuple
from urllib.parse import unquote

from loopback import Request

MODELS = ("nomic-embed-text:latest", "embeddinggemma:300m", "llama3.2:3b")
"""What `/api/tags` of Ollama lists: two that embed and one that does not."""

_GEMINI = re.compile(r"/v1(?:beta|alpha)?/models/([^/:]+):(embedContent|batchEmbedContents)")
_BEDROCK = re.compile(r"/model/([^/]+)/invoke")

_MOST = {
    "openai": 2048,
    "mistral": 512,
    "voyage": 1000,
    "gemini": 100,
    "ollama": 100_000,
    "titan": 1,
    "cohere": 96,
}
_MEDIA = ("image/png", "image/jpeg", "audio/mpeg", "audio/wav")
_MOST_TOKENS = {"openai": 300_000, "mistral": 16_384, "voyage": 120_000}
_MOST_TOKENS_OF_ONE = {"openai": 8192, "gemini": 2048, "titan": 8192}


class Wrong(Exception):
    """The request is refused; `body` is what the provider says."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


class Asked(NamedTuple):
    """A request for vectors, whatever its language."""

    api: str
    model: str
    texts: list[str]
    dims: int = 0
    """0 for as many as the model has."""
    base64: bool = False
    kind: str = ""
    """What the texts are said to be: an input type or a task type."""
    single: bool = False
    """The answer holds one vector and no list."""
    by_type: bool = False


class Row(NamedTuple):
    """One vector of an answer; `embedding` is JSON and need not be a vector at all."""

    place: int | None
    """Its `index`, left out when None."""
    embedding: str


class Answer(NamedTuple):
    """Everything an answer says."""

    rows: list[Row]
    model: str
    as_object: bool = False


def understand(request: Request) -> Asked | None:
    """The texts a request wants vectors of; None when it is no embedding request; raises Wrong."""
    if request.method != "POST":
        return None
    gemini = _GEMINI.fullmatch(request.path)
    bedrock = _BEDROCK.fullmatch(request.path)
    if gemini:
        asked = _gemini(unquote(gemini[1]), gemini[2], _json(request))
    elif bedrock:
        asked = _bedrock(unquote(bedrock[1]), _json(request))
    elif request.path == "/api/embed":
        asked = _ollama(_json(request))
    elif request.path.endswith("/embeddings"):
        asked = from_openai_body(_json(request))
    else:
        return None
    check_limits(asked)
    return asked


def from_openai_body(body: dict[str, Any]) -> Asked:
    """The body of `/v1/embeddings`, also as one line of a batch file."""
    model = str(body.get("model") or "")
    api = (
        "voyage"
        if model.startswith("voyage")
        else "mistral"
        if model.startswith("mistral")
        else "openai"
    )
    given = body.get("input")
    texts = [given] if isinstance(given, str) else given
    if not model:
        raise Wrong(400, "you must provide a model parameter")
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise Wrong(400, "'$.input' is invalid. Please check the API reference.")
    if api == "voyage" and body.get("input_type") not in (None, "query", "document"):
        raise Wrong(400, "input_type must be one of query, document or null.")
    dims = int(body.get("dimensions") or body.get("output_dimension") or 0)
    return Asked(
        api=api,
        model=model,
        texts=texts,
        dims=dims,
        base64=body.get("encoding_format") == "base64",
        kind=str(body.get("input_type") or ""),
    )


def check_limits(asked: Asked) -> None:
    """Refuse what the real provider refuses; a token is taken for four bytes."""
    sizes = [len(text.encode("utf-8", "replace")) // 4 for text in asked.texts]
    if not asked.texts or not all(text.strip() for text in asked.texts):
        raise Wrong(400, "the input may not be empty.")
    if len(sizes) > _MOST[asked.api]:
        raise Wrong(
            400, f"at most {_MOST[asked.api]} inputs are allowed in one request, got {len(sizes)}."
        )
    if max(sizes) > _MOST_TOKENS_OF_ONE.get(asked.api, 1 << 30):
        raise Wrong(
            400, f"this model's maximum context length is {_MOST_TOKENS_OF_ONE[asked.api]} tokens."
        )
    if sum(sizes) > _MOST_TOKENS.get(asked.api, 1 << 30):
        raise Wrong(400, f"at most {_MOST_TOKENS[asked.api]} tokens are allowed in one request.")


def gemini_text(request: dict[str, Any]) -> Asked:
    """One `embedContent` request, also as one line of a batch file."""
    parts = (request.get("content") or {}).get("parts") or []
    text = " ".join(
        _seen(part["inlineData"], str(request.get("model") or ""))
        if "inlineData" in part
        else str(part.get("text", ""))
        for part in parts
    )
    dims = int(request.get("outputDimensionality") or 0)
    model = str(request.get("model") or "").removeprefix("models/")
    return Asked(
        api="gemini", model=model, texts=[text], dims=dims, kind=str(request.get("taskType") or "")
    )


def _seen(inline: dict[str, Any], model: str) -> str:
    """What an image shows or a sound says: the words in its bytes, after the file's header."""
    if not model.startswith("models/gemini-embedding-2"):
        raise Wrong(400, "This model does not support inline data.")
    if inline.keys() != {"mimeType", "data"} or inline["mimeType"] not in _MEDIA:
        raise Wrong(400, f"Unsupported MIME type: {inline.get('mimeType')}")
    data = base64.b64decode(inline["data"], validate=True)
    if b"unreadable" in data:
        raise Wrong(400, "Unable to process input image.")
    return " ".join(word.decode() for word in re.findall(rb"[A-Za-z]{3,}", data[16:]))


def _gemini(model: str, verb: str, body: dict[str, Any]) -> Asked:
    if verb == "embedContent":
        return gemini_text(body)._replace(model=model, single=True)
    one = [gemini_text(request) for request in body.get("requests") or []]
    if any(asked.model != model for asked in one):
        raise Wrong(400, "every request must name the model of the path.")
    kinds = sorted({asked.kind for asked in one})
    dims = one[0].dims if one else 0
    return Asked(
        api="gemini",
        model=model,
        texts=[asked.texts[0] for asked in one],
        dims=dims,
        kind=",".join(kinds),
    )


def _ollama(body: dict[str, Any]) -> Asked:
    model = str(body.get("model") or "")
    if not any(known == model or known.partition(":")[0] == model for known in MODELS):
        raise Wrong(404, f'model "{model}" not found, try pulling it first')
    given = body.get("input")
    texts = [given] if isinstance(given, str) else list(given or [])
    return Asked(api="ollama", model=model, texts=texts, dims=int(body.get("dimensions") or 0))


def _bedrock(model: str, body: dict[str, Any]) -> Asked:
    if ".titan-embed" in f".{model}":
        if not isinstance(body.get("inputText"), str):
            raise Wrong(400, "Malformed input request: required key [inputText] not found")
        return Asked(
            api="titan",
            model=model,
            texts=[body["inputText"]],
            dims=int(body.get("dimensions") or 0),
            single=True,
        )
    if "cohere.embed" in model:
        kind = str(body.get("input_type") or "")
        if kind not in ("search_document", "search_query", "classification", "clustering"):
            raise Wrong(400, "Malformed input request: input_type is required")
        texts = list(body.get("texts") or [])
        dims = int(body.get("output_dimension") or 0)
        return Asked(
            api="cohere",
            model=model,
            texts=texts,
            dims=dims,
            kind=kind,
            by_type="float" in (body.get("embedding_types") or ()),
        )
    raise Wrong(404, "Could not resolve the foundation model from the provided model identifier.")


def render(asked: Asked, answer: Answer) -> bytes:
    """An answer in the language of its request."""
    values = [row.embedding for row in answer.rows]
    tokens = sum(len(text) for text in asked.texts) // 4 + 1
    listed = f"[{','.join(values)}]"
    match asked.api:
        case "gemini" if asked.single:
            text = f'{{"embedding":{{"values":{_first(values)}}}}}'
        case "gemini":
            text = '{"embeddings":[' + ",".join(f'{{"values":{value}}}' for value in values) + "]}"
        case "ollama":
            text = (
                f'{{"model":{json.dumps(answer.model)},"embeddings":{listed},'
                f'"prompt_eval_count":{tokens}}}'
            )
        case "titan":
            text = f'{{"embedding":{_first(values)},"inputTextTokenCount":{tokens}}}'
        case "cohere":
            inner = f'{{"float":{listed}}}' if asked.by_type else listed
            text = f'{{"id":"0","embeddings":{inner},"texts":{json.dumps(asked.texts)}}}'
        case _:
            rows = [_openai_row(row) for row in answer.rows]
            named = ",".join(f'"{at}":{row}' for at, row in enumerate(rows))
            data = f"{{{named}}}" if answer.as_object else f"[{','.join(rows)}]"
            usage = f'{{"prompt_tokens":{tokens},"total_tokens":{tokens}}}'
            text = (
                f'{{"object":"list","data":{data},"model":{json.dumps(answer.model)},'
                f'"usage":{usage}}}'
            )
    return text.encode()


def refusal(api: str, status: int, message: str) -> bytes:
    """An error as the provider words it."""
    match api:
        case "gemini":
            body: dict[str, object] = {
                "error": {"code": status, "message": message, "status": "INVALID_ARGUMENT"}
            }
        case "ollama":
            body = {"error": message}
        case "titan" | "cohere":
            body = {"message": message}
        case "voyage":
            body = {"detail": message}
        case _:
            body = {
                "error": {
                    "message": message,
                    "type": "invalid_request_error",
                    "param": None,
                    "code": None,
                }
            }
    return json.dumps(body).encode()


def as_base64(numbers: Sequence[str | float]) -> str:
    """The same vector as base64 of float32 numbers, as `encoding_format` asks for; JSON."""
    return json.dumps(
        base64.b64encode(struct.pack(f"<{len(numbers)}f", *map(float, numbers))).decode()
    )


def _openai_row(row: Row) -> str:
    index = "" if row.place is None else f'"index":{row.place},'
    return f'{{"object":"embedding",{index}"embedding":{row.embedding}}}'


def _first(values: list[str]) -> str:
    return values[0] if values else "null"


def _json(request: Request) -> dict[str, Any]:
    try:
        body = json.loads(request.body)
    except ValueError as error:
        raise Wrong(400, "We could not parse the JSON body of your request.") from error
    if not isinstance(body, dict):
        raise Wrong(400, "The body must be a JSON object.")
    return body
