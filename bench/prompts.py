"""What `recall.py` and `hooks.py` ask: questions with an answer, and what people type to a coding
agent all day.

The prompts fall into two halves by a checksum. The constants of `clawmark.agent.prompt.recall_rule`
were chosen on one half; the other is held out, and is what the limits are for."""

from __future__ import annotations

from zlib import crc32

SAMPLE: tuple[tuple[str, tuple[int, ...]], ...] = (
    ("which database did we choose?", (30,)),
    ("why were customers charged twice?", (19,)),
    ("which foods are unsafe due to an allergy?", (14,)),
    ("what can Ines not eat?", (14,)),
    ("when are we allowed to deploy?", (0, 25)),
    ("who does design for us?", (0, 33)),
    ("what does Plover cost per month?", (0,)),
    ("how long did the last restore drill take?", (2, 0)),
    ("why did we decide against sqlite?", (30,)),
    ("who takes care of the dog while I'm in Portugal?", (1, 6, 0)),
    ("can you remind me what we said about giving discounts to charities", (3, 0)),
    ("how do i stop a running migration", (25,)),
    ("which bug made lessons move by one hour?", (22,)),
    ("when is my flight to Porto?", (6, 0)),
    ("what did the front desk at Northgate ask for?", (29,)),
    ("let's write the release note for the change feed, what was it supposed to say?", (15, 10)),
    ("add the printing layout now. what paper sizes do schools use?", (9, 21)),
    ("why do the dev machines have strange time zones? can i change that?", (22, 0)),
    ("what may freelancers get access to?", (3, 0)),
    ("who is Solveig again?", (7, 6, 2, 1)),
    ("implement the webhook handler so that repeated stripe events are ignored", (19,)),
    ("set up the status page on the same server, ok?", (24,)),
    ("what were my blood test results?", (13,)),
    ("how do I reset the standing desk?", (3,)),
)
"""Questions about the sample workspace, and how many days ago the notes that answer them were
written; 0 is MEMORY.md.
"""

TINY: tuple[tuple[tuple[str, ...], tuple[tuple[str, int], ...]], ...] = (
    (("We chose PostgreSQL for billing",), (("which database did we choose for billing?", 0),)),
    (
        ("- We chose PostgreSQL for billing.\n",),
        (("what db does billing use", 0), ("where do invoices get stored?", 0)),
    ),
    (
        ("# Facts\n\n- Deploys go out on Tuesdays from the main branch.\n",),
        (("when do we deploy?", 0), ("which day are releases shipped", 0)),
    ),
    (
        ("The API key rotation happens every 90 days; Dana runs it.\n",),
        (("who rotates the api keys?", 0),),
    ),
    (
        ("- I prefer tabs over spaces.\n- Use pytest, not unittest.\n",),
        (("do I prefer tabs or spaces?", 0), ("which test framework should you use?", 0)),
    ),
    (
        ("# Home\n\nThe wifi password is on the fridge. The router is a FritzBox.\n",),
        (("where is the wifi password", 0), ("what router do we have at home?", 0)),
    ),
    (
        ("Ann prefers green tea.\n", "Bob is allergic to peanuts.\n"),
        (("what does Ann like to drink?", 0), ("what is bob allergic to?", 1)),
    ),
    (
        (
            "# Decision\nWe use Redis for the job queue because Celery was already there.\n",
            "# People\n- Mallory owns the sitemap generator.\n",
        ),
        (
            ("why do we use redis?", 0),
            ("who owns the sitemap generator?", 1),
            ("which broker does the job queue use", 0),
        ),
    ),
    (
        (
            "The staging server is heron, production is osprey.\n",
            "Backups run at 04:30.\n",
            "Python 3.12 is the minimum version.\n",
        ),
        (
            ("what is the production server called?", 0),
            ("when do backups run?", 1),
            ("which python version do we support", 2),
        ),
    ),
    (
        (
            "Dentist appointment on 12 March at 9.\n",
            "Car insurance renews in June.\n",
            "Mum's birthday is 4 October.\n",
        ),
        (
            ("when is my dentist appointment?", 0),
            ("when does the car insurance renew", 1),
            ("when is my mother's birthday?", 2),
        ),
    ),
    (
        (
            "# Project Kestrel\nKestrel is the internal name of the search rewrite. Owner: Jun. "
            "Deadline: end of Q3.\n",
            "# Style\nCommit messages in the imperative, max 72 characters.\n",
        ),
        (
            ("what is kestrel?", 0),
            ("who is responsible for the search rewrite?", 0),
            ("how should commit messages look?", 1),
        ),
    ),
    (
        ("Error E4012 means that the licence server is unreachable; restart lmgrd.\n",),
        (("I get E4012 again, what was that?", 0),),
    ),
    (
        (
            "The customer Initech pays by bank transfer, net 60.\n",
            "Globex wants invoices in PDF/A.\n",
            "Umbrella cancelled in May.\n",
            "Hooli is on the enterprise plan.\n",
        ),
        (
            ("how does initech pay?", 0),
            ("which format does globex want its invoices in?", 1),
            ("what plan is hooli on?", 3),
        ),
    ),
    (
        ("Die Datenbank für die Abrechnung ist PostgreSQL.\n",),
        (("welche Datenbank nutzt die Abrechnung?", 0),),
    ),
    (("计费系统使用 PostgreSQL 数据库。\n",), (("计费系统用什么数据库？", 0),)),
    (
        ("La base de données de la facturation est PostgreSQL.\n",),
        (("quelle base de données pour la facturation ?", 0),),
    ),
    (
        (
            "# 2026-01-10\n\n- Talked to legal: user data must stay in the EU, so only "
            "eu-central-1.\n- Lunch with Omar.\n",
        ),
        (("which aws region can we use?", 0), ("what did legal say about user data?", 0)),
    ),
    (
        (
            "Running 5k on Saturdays, knee hurts after hills.\n",
            "Reading list: Piranesi, The Dispossessed.\n",
            "Sofa colour: moss green, ordered from Bolia.\n",
            "Passport expires 2027-02.\n",
            "Landlord: Mr Okafor, 020 7946 0018.\n",
        ),
        (
            ("when does my passport expire?", 3),
            ("what's the landlord's phone number?", 4),
            ("which books did I want to read?", 1),
            ("which colour is the new sofa?", 2),
            ("why does my knee hurt?", 0),
        ),
    ),
    (
        (
            "# MEMORY\n\n- The user is called Sam and works at Acme on the mobile app.\n- Sam "
            "likes concise answers.\n",
        ),
        (("what's my name?", 0), ("where do I work?", 0)),
    ),
    (
        (
            "We dropped GraphQL in favour of REST in January because caching was painful.\n",
            "Frontend: SvelteKit. Designers use Figma.\n",
        ),
        (
            ("why did we drop graphql?", 0),
            ("what frontend framework are we on?", 1),
            ("did we ever consider graphql for the api?", 0),
        ),
    ),
    (
        (
            "The linter config lives in the tooling repo; never edit it in the service repos.\n",
            "CI runs on self-hosted runners named forge-1 to forge-4.\n",
        ),
        (("can I change the linter config here?", 0), ("which runners does ci use?", 1)),
    ),
    (
        ("Retry failed webhooks at most 5 times with exponential backoff.\n",),
        (("how often do we retry webhooks?", 0), ("implement the retry logic for webhooks", 0)),
    ),
)
"""Workspaces of one to five notes; questions, each with the number of the note that answers it."""

CHATTER = (
    "fix the failing test in utils.py",
    "please refactor this function to use async",
    "yes, go on",
    "add a dark mode toggle to the settings page",
    "can you explain how the decorator works here",
    "rename the variable foo to bar everywhere",
    "let's commit this and push",
    "convert this to typescript",
    "the button is misaligned on mobile",
    "implement pagination for the users endpoint",
    "use a context manager instead of try finally",
    "update the README with installation steps",
    "ok thanks",
    "thanks, that works",
    "perfect, ship it",
    "no, revert that",
    "hmm not quite, try again",
    "continue",
    "looks good to me",
    "great, now do the same for the other file",
    "yes please",
    "stop, that's wrong",
    "sounds good, proceed with option 2",
    "wait, why did you delete that?",
    "do it",
    "nice work",
    "ok what's next?",
    "I'll take a look tomorrow",
    "skip this one for now",
    "run the tests",
    "run the linter and fix whatever it complains about",
    "git rebase onto main and resolve the conflicts",
    "open a pull request with a short description",
    "make the function shorter",
    "add type hints to this module",
    "remove the unused imports",
    "write a docstring for every public method",
    "extract this block into a helper function",
    "add logging to the exception handler",
    "bump the version number and tag it",
    "delete the commented out code",
    "add a unit test for the edge case where the list is empty",
    "replace the for loop with a list comprehension",
    "move this class into its own file",
    "make this component responsive",
    "add a loading spinner while the data is fetched",
    "create a dockerfile for this app",
    "set up eslint and prettier",
    "install the dependencies and start the dev server",
    "generate a regex that matches ISO dates",
    "write a bash one-liner that counts lines in all js files",
    "sort the array by the created_at field descending",
    "make the modal close when I press escape",
    "center the div vertically",
    "add an index to the email column",
    "cache the result of this function",
    "use an enum instead of string constants here",
    "split this long line",
    "translate the comments to english",
    "what does this regex do?",
    "why is this returning undefined?",
    "how can I speed up this loop?",
    "what's the difference between a list and a tuple?",
    "is there a memory leak in this code?",
    "where is the entry point of this program?",
    "which files did you change?",
    "does this handle null values?",
    "why does the build fail on windows but not on linux?",
    "can you walk me through the code step by step?",
    (
        "TypeError: Cannot read properties of undefined (reading 'map')\n    at UserList "
        "(src/components/UserList.tsx:24:18)\n    at renderWithHooks "
        "(node_modules/react-dom/cjs/react-dom.development.js:14985:18)\n    at "
        "mountIndeterminateComponent "
        "(node_modules/react-dom/cjs/react-dom.development.js:17811:13)"
    ),
    (
        'Traceback (most recent call last):\n  File "/app/main.py", line 42, in <module>\n    '
        "main()\n  File "
        '"/app/main.py", line 31, in main\n    data = json.loads(body)\n  File '
        '"/usr/lib/python3.11/json/__init__.py", line 346, in loads\n    return '
        "_default_decoder.decode(s)\n"
        "json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)"
    ),
    (
        "error[E0502]: cannot borrow `self.items` as mutable because it is also borrowed as "
        "immutable\n  --> "
        "src/store.rs:57:13\n   |\n55 |         let first = &self.items[0];\n   |                "
        "      ---------- "
        "immutable borrow occurs here"
    ),
    (
        "npm ERR! code ERESOLVE\nnpm ERR! ERESOLVE unable to resolve dependency tree\nnpm ERR! "
        "Found: "
        'react@18.2.0\nnpm ERR! Could not resolve dependency: peer react@"^17.0.0" from '
        "react-beautiful-dnd@13.1.0"
    ),
    "I get this when I start it: ModuleNotFoundError: No module named 'requests'",
    "FAILED tests/test_api.py::test_create_user - AssertionError: assert 422 == 201\nwhat is "
    "going on here?",
    (
        "segfault in the parser, here is the backtrace: #0 0x00007ffff7e4 in strlen () from "
        "/lib/libc.so.6 #1 "
        "0x0000555555 in parse_line (line=0x0) at parser.c:88"
    ),
    (
        "what does this do?\n\ndef merge(a, b):\n    result = []\n    i = j = 0\n    while i < "
        "len(a) and j < "
        "len(b):\n        if a[i] <= b[j]:\n            result.append(a[i]); i += 1\n        "
        "else:\n            "
        "result.append(b[j]); j += 1\n    return result + a[i:] + b[j:]\n"
    ),
    (
        "please review:\n```ts\nexport async function fetchUser(id: string): Promise<User> {\n  "
        "const response = "
        "await fetch(`/api/users/${id}`);\n  if (!response.ok) throw new Error(`Request failed: "
        "${response.status}`);\n  const body = await response.json();\n  return { id: body.id, "
        "name: body.name, "
        "email: body.email, createdAt: new Date(body.created_at) };\n}\n```\nis the error "
        "handling ok?"
    ),
    (
        "here is my component, the state does not update when I click:\n\nfunction Counter() {\n "
        " const [count, "
        "setCount] = useState(0);\n  const handleClick = () => { count = count + 1; };\n  return "
        "<button "
        "onClick={handleClick}>Clicked {count} times</button>;\n}\n"
    ),
    (
        "optimise this query:\nSELECT o.id, o.total, c.name FROM orders o JOIN customers c ON "
        "c.id = o.customer_id "
        "WHERE o.created_at > now() - interval '30 days' AND o.status = 'open' ORDER BY "
        "o.created_at DESC LIMIT "
        "100;"
    ),
    (
        "I have a class that loads a config file, merges the values with environment variables "
        "and command line "
        "flags, validates them against a schema and exposes them as attributes. The problem is "
        "that it is "
        "impossible to test because everything happens in the constructor. Please split it into "
        "pure functions, "
        "keep the public interface the same, and write tests for each of the steps. Don't add "
        "any new dependencies."
    ),
    "build a small todo app with a form, a list and a delete button, no frameworks please",
    "I want the sidebar to collapse on small screens and remember its state in local storage",
    "write a script that walks a directory, finds duplicate files by hash and prints them grouped",
    "the tests pass locally but fail in CI, can you figure out why? start by looking at the "
    "workflow file",
    "change the color of the primary button to blue and make the corners rounder",
    "please make sure that the endpoint returns 404 instead of 500 when the record does not exist",
    "use the new syntax everywhere and get rid of the deprecated calls",
    "refactor the tests so they share a fixture and don't hit the network",
    "mach die Funktion bitte kürzer und schreib einen Test dafür",
    "bitte die Tests laufen lassen",
    "ja, mach weiter",
    "ajoute un test pour cette fonction",
    "corrige el error de la línea 12",
    "把这个函数改成异步的",
    "谢谢，继续",
)
"""Commands, nods, errors and pasted code: nothing to look up in a memory."""


def is_held_out(prompt: str) -> bool:
    """Whether a prompt is of the half that no constant was chosen on."""
    return bool(crc32(prompt.encode()) & 1)
