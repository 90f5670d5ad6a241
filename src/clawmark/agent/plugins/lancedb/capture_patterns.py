"""The patterns of automatic capture: what is left out, and what is kept in which category.

Every gap is bounded, so that a search takes linear time. `capture_rules` applies them."""

from __future__ import annotations

import re

PREFERENCE, DECISION, ENTITY, FACT, OTHER = "preference", "decision", "entity", "fact", "other"


def _pattern(*ways: str, case: bool = False) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{way})" for way in ways), 0 if case else re.IGNORECASE)


# --- what is left out ---

CODE_BLOCK = re.compile(r"(?:```|~~~).*?(?:```|~~~|\Z)", re.DOTALL)
QUOTED = re.compile(r"\s*(?:>|\| )")
LIST_MARK = re.compile(r"\A(?:[-*+•]|[0-9]{1,3}[.)])\s+")
LIST_LINE = re.compile(r"^\s*[-*+] ", re.MULTILINE)
BOLD = re.compile(r"\*\*[^*\n]{1,200}\*\*")
CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
EMOJI = re.compile("[\U0001f300-\U0001faff\u2600-\u27bf]")
SENTENCE_END = re.compile(
    r"(?<=[!?])\s+|(?<=[。！？])\s*|(?<!\b(?:Dr|Mr|Ms|St"
    r"|vs)\.)(?<!\bMrs\.)(?<!\bProf\.)(?<=[\w)\"'\]]\.)\s+(?=[^a-z])"
)
LEAD_IN = re.compile(
    r"\A(?:(?:by the way|btw|also|and|but|so|well|yes|yeah|no|oh|ok|okay|anyway|besides"
    r"|speaking of which|actually|thanks|hey|hi)[,.!—-]+\s+|(?:and|but|so)\s+(?=i\b|we\b|my\b"
    r"|our\b)){1,3}",
    re.IGNORECASE,
)
DEPENDENT = re.compile(
    r"(?:it|they|he|she|this|that|these|those|because|so|which|otherwise)\b", re.IGNORECASE
)
POINTS_ELSEWHERE = re.compile(
    r"\s*(?:it|that|this|these|those|them|your|you|how|what|where|when|both|either|one|its"
    r"|all (?:of )?(?:these|those|the|your|this|that)|(?:the|a"
    r"|an) (?:[\w'&-]{1,20} ){0,4}(?:ideas?|sounds?|looks?|first|second|third|last|latter|former"
    r"|others?|ways?|suggestions?|templates?|styles?|tips?|options?|approach|plans?|designs?"
    r"|concept|recommendations?|list|break|nap))\b(?! is\b)",
    re.IGNORECASE,
)
"""What follows a rule's phrase in a sentence that makes sense only in its conversation."""
ASKS = _pattern(
    r"(?:what|which|who|whom|whose|why|how)\b",
    r"(?:when|where)\s+(?:do|does|did|is|are|was|were|will|can|could|should|would|has|have)\b",
    r"(?:do|does|did|is|are|was|were|can|could|should|would|will|has|have|shall|may)\s+(?:i|you|we"
    r"|they|he|she|it|the|there|this|that|my|our|anyone)\b",
    r"(?:tell|remind|ask) (?:me|us)\b",
)
REQUEST = re.compile(
    r"(?:(?:please|now|then|and|ok|okay|also|just)[,\s]+){0,3}(?:add|analy[sz]e|answer|book|build"
    r"|check|clean|compare|compose|continue|convert|correct|create|delete|describe|draft|edit"
    r"|e-?mail|explain|find|fix|format|forward|generate|give|help|implement|improve|list|look|mail"
    r"|make|merge|message|move|open|order|print|proofread|read|refactor|remove|rename|reply|review"
    r"|rewrite|run|schedule|search|send|show|sort|summari[sz]e|text|translate|update|write)\b",
    re.IGNORECASE,
)
"""The start of a sentence that asks for something to be done once."""
HEDGED = _pattern(
    r"\b(?:maybe|perhaps|might|possibly|probably|hypothetically|apparently|supposedly)\b",
    r"\bnot (?:sure|certain|decided)\b|\b(?:i|we)(?:'m| am|'re| are)? (?:wonder|consider|thinking)",
    r"\b(?:what if|suppose|imagine|pretend|for example|for instance|let's say)\b",
    r"\A(?:and |but |so )?if\b|\bif (?:i|we) (?:were|had|moved|could)\b",
    r"\b(?:i|we|you) (?:could|should|may) (?!not\b)|\bthink (?:i|we)(?:'ll| will|'d| would)\b",
    r"\bnow that\b|\bto (?:see|find out|figure out|check|compare) (?:what|which|whether|if|how)\b",
    r"\b(?:said|says|claims|thinks|told me) (?:that )?(?:he|she|they|it)\b",
)
TRANSIENT = _pattern(
    r"\b(?:right now|at the moment|currently|today|tonight|this (?:morning|afternoon|evening|week)"
    r"|just now|for now)\b",
)
SECRET = _pattern(
    r"\b(?:pass(?:word|phrase|code|wd)|pin(?: code| number)?|cvv|cvc|secret(?: key| code)?|(?:api"
    r"|access|private|signing|licen[cs]e) ?keys?|(?:access|auth|bearer|api|refresh) ?token"
    r"|credentials?|log ?in|ssn|social (?:security|number)|card number|iban|one-time code|2fa code"
    r"|recovery code|(?:door|gate|alarm|safe|lock|entry|access|garage|voicemail)(?: \w+)? code"
    r"|combination"
    r"|heslo|geheimzahl|passwort|kennwort)\b",
    r"\b(?:safe|vault|lock|locker|padlock)\b.{0,40}[0-9]{2}",
    r"密码|パスワード|暗証番号|비밀번호",
)
"""Words for secrets without a recognisable shape."""
OUTPUT = re.compile(
    r"^traceback \(most recent|^\s{0,40}file \"[^\"\n]{1,300}\", line [0-9]|^diff --git "
    r"|^@@ -[0-9]|^(?:\$|>>>|\w{1,40}@[\w.-]{1,60}:[^\n]{0,80}[$#]) "
    r"|^\[?[0-9]{4}-[0-9]{2}-[0-9]{2}[t ][0-9]{2}:[0-9]{2}:[0-9]|^\[?(?:debug|info|warn|warning"
    r"|error|fatal)\b[\]:]|^(?:message-id|content-type|subject|from|to): |[!-~]{200}",
    re.IGNORECASE | re.MULTILINE,
)
CODE_LINE = re.compile(
    r"[;{}]\s*$|^\s*(?:import [\w.]+$|from [\w.]+ import |def \w+\(|class \w+[:({]"
    r"|return [\w(\"'[]|function\b[ \w]*\(|(?:const|let|var) \w+ ?=|public |private |#include|<\w+"
    r"|//|/\*|#!|\$ )|(?i:^\s*(?:select .{1,200} from|insert into|update \w+ set|delete from"
    r"|create table)\b)|\)\s*:\s*$|=>|==|:=|\w\(\w*\)$"
)

# --- what is kept ---

ADVERBS = r"(?:(?:really|generally|usually|always|much|strongly|definitely|still|also|all|now|just"
ADVERBS += r"|finally|both|jointly|personally|absolutely|already)\s+){0,3}"
PEOPLE = (
    r"(?:wife|husband|partner|spouse|fianc[eé]e?|girlfriend|boyfriend|mother|father|mom|mum|dad"
    r"|son|daughter|sister|brother|cousin|aunt|uncle|grandmother|grandfather|boss|manager|lead"
    r"|colleague|assistant|accountant|lawyer|solicitor|doctor|gp|dentist|therapist|vet|landlord"
    r"|landlady|neighbou?r|friend|roommate|flatmate|teacher|tutor|coach|mechanic|plumber"
    r"|electrician|client|customer|supplier|contractor|co-?founder|ceo|cto|cfo|contact|agent|dog"
    r"|cat|horse|parrot|pet)"
)
REMEMBER = _pattern(
    r"(?:(?:please|and|also|btw|by the way|ok|okay)[,\s]+){0,3}(?:remember|don't forget"
    r"|do not forget|keep in mind|bear in mind|(?:make a |take )note|note|for the record|fyi"
    r"|just so you know)(?: (?:that|this|for (?:later|next time"
    r"|the future)))?\s*[:,—-]?\s+(?!(?:to|when|how|me|us)\b)",
    r"(?:prosím[,\s]+)?(?:pamatuj|zapamatuj)(?: si)?[,\s]+(?:že\s+)?",
    r"(?:请|請)?(?:记住|記住|记得|記得|记一下)[，,：:\s]*",
    r"기억해\s?(?:줘|주세요)?[,:\s]*",
)
LIKES = (
    r"prefer|like|love|enjoy|hate|dislike|loathe|adore|favou?r|avoid|can(?:no|')t stand|can(?:no"
    r"|')t bear|(?:don't|do not|never) (?:like|want(?! to\b)|eat|drink|use|take|work)"
)
PREFERENCE_RULE = _pattern(
    rf"(?<!that )(?<!which )(?<!whether )(?<!one )(?<!if )\b(?:i"
    rf"|we) {ADVERBS}(?:{LIKES})\b(?! (?:to (?:see|know|ask|hear|think|say)|any of)\b)",
    r"\b(?:my|our) (?:(?:absolute|all-time) )?(?:favou?rite|preferred|usual) [\w' -]{1,40}? (?:is"
    r"|are)\b",
    r"\A(?:please |and |also,? |but )?(?:always|never) (?!mind\b|again\b|been\b|ever\b)[a-z]{3,}\b",
    r"\bplease (?:always|never)\b",
    r"\b(?:works?|suits?|is|are) (?:best|better|easiest|ideal) for (?:me|us)\b",
    r"\bi(?:'m| am) (?:not )?(?:a (?:big |huge )?fan of|(?:a )?vegetarian|(?:a )?vegan)\b",
    r"\bi(?:'d| would) rather (?:not )?(?!see|know|hear)\w",
    r"\b(?:mám|máme) (?:\w+ )?(?:rád|ráda|raději|nejraději)|\bpreferuj|\bnesnáš|\bnemám rád",
    r"我(?:更|很|最|比较)?(?:喜欢|喜歡|偏好|不喜欢|不喜歡|讨厌|討厭|爱|愛)",
    r"(?:が|は)(?:大?好き|嫌い|苦手)|(?:좋아|싫어)(?:해|합니다|요)",
)
DECISION_RULE = _pattern(
    rf"\b(?:we|i|the team|[a-z]+ and i)(?:'ve| have| had)? {ADVERBS}"
    r"(?:decided|agreed|settled|chose|opted|resolved|picked(?! up| out)|concluded|standardi[sz]ed"
    r"|committed)\b",
    rf"\b(?:we|i)(?:'re| are|'m| am|'ll| will) {ADVERBS}(?:going with|go with|sticking (?:with|to)"
    r"|stick (?:with|to)|switching|switch|moving|migrating|migrate|dropping|drop|adopting|adopt"
    r"|staying with|stay with|keeping)\b",
    r"\bwe(?:'ll| will) use\b|\b(?:from|starting) (?:now|next \w+|\w+day)(?: on)?,? we\b",
    r"\blet(?:'s| us) (?:go with|use|stick (?:with|to)|switch to|settle on|take|keep|drop|adopt)\b",
    r"\b(?:the|our|my) (?:final )?(?:decision|verdict|conclusion) is\b|\bthat's final\b|\bit(?:'s"
    r"| is) (?:decided|settled)\b|\bas (?:decided|agreed),? we\b",
    r"\b(?:rozhodli|rozhodl|rozhodla) (?:jsme|jsem)|\b(?:jsme|jsem) se rozhod|\bbudeme používat",
    r"(?:我们|我們|我|咱们)(?:已经|已經)?(?:决定|決定|选择了|選擇了)|(?:に|と)決め(?:た|ました)|결정했",
)
EMAIL = r"[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,40}){1,4}"
PHONE = r"\+[0-9][0-9 ()./-]{7,20}[0-9]"
REACHED = r"(?:is|at|on|under|:|=|reach|reached|contact|call|phone|mail|e-?mail|number)"
ENTITY_RULE = _pattern(
    rf"\b(?i:my|our|his|her|their)\b[^\n]{{0,60}}?\b{REACHED}\b[^\n]{{0,30}}?(?:{EMAIL}|{PHONE})",
    rf"(?:^|[ (])[A-Z][\w'’-]+(?:[^\n]{{0,60}}?\b{REACHED}\b|,)[^\n]{{0,30}}?(?:{EMAIL}|{PHONE})",
    rf"\b(?i:my|our) (?:[a-z-]{{1,20}} ){{0,2}}{PEOPLE}(?:'s name)? (?:is|are) "
    r"(?:called |named )?(?:Dr\.? |Prof\.? |Mr\.? |Mrs\.? |Ms\.? )?[A-Z][\w'’-]+",
    rf"\b[A-Z][\w'’-]+(?: [A-Z][\w'’-]+)? (?:is|was) (?:my"
    rf"|our) (?:[a-z-]{{1,20}} ){{0,2}}{PEOPLE}\b",
    r"\b(?i:you can call|call|please call) me [A-Z]|\b(?i:my name is|i go by|i'm called) [A-Z]",
    r"我叫|我的名字(?:是|叫)|私の名前は|제 이름은|\b[Jj]menuji se\b",
    case=True,
)
PLACE = r"(?:in|at|near|from|for|as|with)"
OUR_THINGS = (
    r"(?:birthday|anniversary|address|time ?zone|deadline|budget|flight|appointment|office|company"
    r"|website|domain|team|meeting|stand-?up|release|launch|contract|lease|subscription"
    r"|licence plate|shoe size|size|blood type|allergy|job|title|hometown|school|university|server"
    r"|repo(?:sitory)?|clinic|shop|store|warehouse|car|bike|house|flat|apartment|report|invoice"
    r"|landlord)"
)
DETAIL = r"(?:[0-9]|\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b|(?-i:\b[A-Z][a-z]+))"
FACT_RULE = _pattern(
    rf"\b(?:my|our"
    rf"|the) (?:[\w'’-]{{1,20}} ){{0,3}}{OUR_THINGS}\b(?: [\w'’-]{{1,20}}){{0,4}}? (?:is|are"
    rf"|starts?|ends?|runs?|expires?|opens?|closes?|moved|takes place|costs?"
    rf"|has)\b[^\n]{{0,80}}?{DETAIL}",
    rf"\b(?:my|our) (?:[\w'’-]{{1,20}} ){{0,2}}{PEOPLE}\b[^\n]{{0,40}}? (?:is|are|lives?|works?"
    rf"|starts?|studies|was born|turns?|has)\b[^\n]{{0,60}}?{DETAIL}",
    rf"(?<!as )\bi (?:{ADVERBS})?(?:live|lived|work|worked|study|studied|teach|grew up|was born"
    rf"|moved|come|volunteer) {PLACE}\b",
    r"\bi (?:speak|own|drive|play|run|manage|lead) (?!into|out|this|that|it)[\w']+",
    r"\bi(?:'m| am) (?:an? (?!bit\b|little\b|lot\b|few\b|tad\b|(?:big |huge )?fan\b"
    r"|idiot\b)[\w -]{3,40}|allergic to|left-handed|right-handed|diabetic|colou?r-?blind|married"
    r"|divorced|based in|from (?-i:[A-Z])|lactose)",
    r"\bi have (?:an? |two |three |four |five |\d+ )(?:[\w-]{1,20} ){0,2}?(?:kids?|child(?:ren)?"
    r"|sons?|daughters?|brothers?|sisters?|dogs?|cats?|cars?|allerg(?:y|ies)|siblings?|twins)\b",
    r"\b(?:můj|moje|má|náš|naše) \w{2,30}(?: \w{2,20})? je\b|\b(?:bydlím|pracuji|pracuju) (?:v|ve"
    r"|jako)\b",
    r"我(?:的|们的|們的)[^\n，。]{1,20}是|我(?:住在|在[^\n，。]{1,20}工作)|私の[^\n、。]{1,20}は",
)
COPULA = re.compile(r"\b(?:is|are|was|has|have|starts|ends|expires|closes|opens)\b|是|je\b")
RULES = (
    (PREFERENCE, PREFERENCE_RULE),
    (DECISION, DECISION_RULE),
    (ENTITY, ENTITY_RULE),
    (FACT, FACT_RULE),
)
