"""Remove stop words from queries.

The lists hold articles, pronouns, question words, auxiliary verbs, vague times ("recently", but
never a date, a month or a year) and the words of asking ("please find the thing we discussed").
They are written for questions to a memory, not for language processing in general.

"war" is a stop word in German but not in English, so a query in the Latin alphabet is read in one
language: the one most of its stop words belong to, or English when in doubt."""

from __future__ import annotations

from functools import cache

from clawmark.text.keywords.scripts import fold, without_accents

_LATIN = {
    "en": """
        a about above after again against ago all also am an and another any anything are aren
        around as at be because been before being below between both but by came can cannot come
        could couldn currently did didn discuss discussed do does doesn doing don done down during
        each earlier ever every everything few find for from further gave get getting give go goes
        going gone got had hadn happen happened has hasn have haven having he her here hers herself
        him himself his how i if in into is isn it its itself just kind know lately later let like
        lot lots made make many me mention mentioned might more most much must my myself need no nor
        not now of off on once one ones only or other our ours out over own please really recently
        said same say shall she should shouldn show so some something sort stuff such take talk
        talked tell than that the their theirs them themselves then there these they thing things
        think this those thought through to today told tomorrow too took type under until up us use
        used using very want was wasn way we went were weren what when where whether which while who
        whom whose why will with won would wouldn yesterday yet you your yours yourself
    """,
    "es": """
        a acerca ademas además ahora al algo algun algún alguna algunas alguno algunos alli allí
        ante antes aqui aquí asi así aun aunque ayer bajo bien buscar busca cada como cómo con cosa
        cosas cual cuál cuales cuáles cuando cuándo cuanto cuánto cuantos cuántos de del desde
        despues después dice dijo donde dónde dos durante e el él ella ellas ellos en encontrar
        entonces entre era eran eres es esa esas ese eso esos esta está estaba estaban están estar
        estas este esto estos estoy fue fueron ha hace hacer hacia han hasta hay hemos he hoy la las
        le les lo los luego mas más me mi mí mis mostrar muestra mucho muy nada ni no nos nosotros
        nuestra nuestro o os otra otro otros para pero poco por porque que qué quien quién quienes
        recientemente se sea segun según ser si sí sido sin sobre solo sólo son soy su sus también
        tan te tiene tienen todo todos tu tú tus un una unas uno unos usted va vamos y ya yo
    """,
    "pt": """
        a ainda algo alguem alguém algum alguma algumas alguns amanhã antes ao aos apenas aquela
        aquele aqueles aquilo as às até cada coisa coisas com como da das de dela dele deles depois
        dessa desse deste disso do dos e é ela elas ele eles em encontrar entre era eram essa essas
        esse esses esta está estão estar estas estava este estes estou eu fez foi foram há hoje isso
        isto já lhe mais mas me mesmo meu meus minha minhas mostrar muito na não nas nem no nos nós
        nossa nosso num numa o onde ontem os ou para pela pelas pelo pelos pois por porque qual
        quais quando quanto quantos que quê quem recentemente se sem ser será seu seus só sobre sua
        suas também te tem têm ter teu teve tinha todo todos tu tua tudo um uma umas uns você vocês
        vos
    """,
    "de": """
        ab aber alle allem allen aller alles als also am an andere anderen auch auf aus bei beim bin
        bis bist bitte da dabei dafür damit danach dann daran darauf darüber das dass daß dazu dein
        deine dem den denn der deren des deshalb dessen dich die dies diese diesem diesen dieser
        dieses ding dinge dir doch dort du durch ein eine einem einen einer eines einige er es etwas
        euch euer finde für gab gegen gerade gestern gibt ging habe haben hat hatte hatten heute
        hier hin ich ihm ihn ihnen ihr ihre ihrem ihren ihrer im in ins ist ja jede jedem jeden
        jeder jedes jetzt kann kannst kein keine können könnte kürzlich machen man mehr mein meine
        meinem meinen mich mir mit mal morgen muss nach neulich nicht nichts noch nun nur ob oder
        ohne schon sehr sein seine seinem seinen sich sie sind so soll sollte über um und uns unser
        unsere unter viel vom von vor wann war waren warum was weil welche welchem welchen welcher
        welches wem wen wenn wer werde werden wie wieder will wir wird wo wohin worden wurde wurden
        würde zeig zeige zu zum zur zwischen
    """,
    "fr": """
        à afin ai ainsi alors après as au aucun aujourd aussi autre autres aux avait avant avec avez
        avoir avons bien ça car ce cela celle celles celui ces cet cette ceux chaque chez chose
        choses ci combien comme comment dans de demain depuis des donc dont du elle elles en encore
        entre es est et étaient était été être eu eux fait faire faut hier hui ici il ils je la là
        le les leur leurs lors lui ma mais me même mes moi moins mon ne ni non nos notre nous on ont
        ou où par parce parlé pas peu peut plus plusieurs pour pourquoi qu quand que quel quelle
        quelles quels qui quoi récemment sa sans se sera ses si son sont sous sur ta te tes toi ton
        toujours tous tout toute toutes très trouve trouver tu un une vers veux voici voilà vos
        votre vous y
    """,
    "it": """
        a abbiamo adesso ai al alcuni all alla alle allo anche ancora avere aveva che chi ci circa
        coi col come con cosa cose così cui da dagli dal dalla dalle dallo dei degli del della delle
        dello di domani dopo dov dove due e è ed era erano essere fa fatto fra fu gli ha hai hanno
        ho i ieri il in io la le lei li lo loro lui ma me mentre mi mia mie miei mio mostra molto ne
        negli nei nel nella nelle nello noi non nostra nostro o ogni oggi per perché però più poi
        prima può qual quale quali quando quanto quanti quella quelle quelli quello questa queste
        questi questo qui recentemente sarà se sei senza si sia siamo sono sopra sta stata stati
        stato su sua sue sugli sui sul sulla sulle sullo suo suoi ti tra tu tua tuo tutti tutto
        trova un una uno vi voi
    """,
}

_OTHER = {
    "ru": """
        а без был была были было быть в вам вас весь вместо во вот все всё всего всех вы где да для
        до его ее её если есть еще ещё ж же за зачем здесь и из или им иногда их к как какая какие
        каким каких какого какое какой каком какую ко когда которая которого которое которой котором
        которую которые который которых кто куда ли либо мне мной может можно мой мою моя мы на над
        надо найди нам нас наш не него неё ней нет нибудь никто ним них ничего но ну о об один
        однако он она они оно от очень по под пожалуйста покажи после потом потому почему при про
        раз с сам свой своя свои себе себя сейчас сегодня сколько со так также такие такой там тебе
        тебя тем тех то тогда того тоже той только том тот тут ты у уже чего чей чем чему что чтобы
        чья эта эти этим этих это этого этой этом этот эту я является вчера недавно
    """,
    "ar": """
        في من إلى الى على عن مع هذا هذه ذلك تلك هؤلاء التي الذي الذين اللذان اللتان اللاتي ما ماذا
        متى أين اين كيف لماذا كم هل أي أية أيضا أيضاً هو هي هم هن هما أنا نحن أنت أنتم كان كانت
        كانوا يكون تكون كنت لم لن لا ليس ليست قد لقد أن إن أنه أنها إنه أو ام أم و ثم بعد قبل بين كل
        بعض غير عند عندما حيث إذا إذ كما حتى لكن منذ خلال حول ضد دون فقط جدا جداً هناك هنا به بها له
        لها لهم فيه فيها منه منها عليه عليها يتم تم أمس اليوم غدا مؤخرا شيء ابحث أرني
    """,
    "hi": """
        का के की को में मे से ने पर और है हैं था थे थी हो होना होता होती होते हुआ हुई हुए यह वह ये
        वे इस उस इन उन इसके उसके इसकी उसकी इसका उसका उनके उनकी उनका इसे उसे क्या कौन कौनसा कौनसी कब
        कहाँ कहां क्यों कैसे कैसा कैसी कितना कितने कितनी किस किसने किसका किसके किसकी किसे किन जो जिस
        जिसने जिसे जिसके जिसकी तो भी ही तक लिए एक कि या नहीं न ना कर करना करने करता करती करते किया
        की गया गई गए गयी अपने अपनी अपना द्वारा साथ बाद पहले कोई कुछ सकता सकते सकती रहा रहे रही तथा
        एवं मैं हम तुम आप मेरा मेरे मेरी हमारा हमारे जब तब अब यहाँ वहाँ कल आज बारे चीज़ बात बताओ
        दिखाओ
    """,
    "el": """
        ο η το οι τα του της των τον την τους τις στο στη στην στον στους στις στα ένα ένας μια μία
        και κι ή να θα δεν μην με σε από για ως προς κατά μετά πριν που πού πως πώς πότε ποιος ποια
        ποιο ποιοι ποιες τι γιατί πόσο είναι ήταν έχει έχουν είχε εγώ εσύ αυτός αυτή αυτό αυτοί αυτά
        μου σου μας σας χθες σήμερα αν όταν όπως αλλά
    """,
    "ko": """
        그 이 저 그것 이것 저것 것 거 게 무엇 무엇인가 무엇인가요 뭐 뭐야 뭐지 누구 누구인가
        누구인가요 누구야 누가 어디 어디인가 어디인가요 어디야 언제 언제인가 언제인가요 언제야 어떤
        어느 어떻게 왜 얼마 얼마나 몇 무슨 나 너 우리 저희 당신 제 내 네 수 때 등 및 또 또는 그리고
        그러나 하지만 그래서 대한 대해 대하여 관한 관해 위한 위해 통해 의해 따라 하는 한 된 되는
        있는 있나 있나요 있다 없는 이다 인가 인가요 했나 했나요 하나요 하다 했던 되었나 되었나요
        됐나 됐나요 보다 가장 더 좀 어제 오늘 내일 최근 방금 찾아 찾아줘 보여 보여줘 알려 알려줘
    """,
}

_UNSPACED = """
    怎么样 为什么 為什麼 什么 什麼 怎么 怎麼 怎样 为何 哪里 哪裡 哪儿 哪个 哪些 多少 是否 如何 何时
    我们 你们 他们 她们 它们 没有 这个 那个 这些 那些 这样 那样 一下 昨天 今天 明天 最近 刚才 之前
    以后 关于 查找 显示 顯示 告诉 どのような どのように について における によって により という
    でした ました ません である だった される どんな あそこ ください 教えて です ます から まで より
    など した して する され いる ある この その あの どの これ それ あれ どれ ここ そこ どこ だれ
    いつ なに なぜ どう いくつ いくら こと もの とき ため よう なん 昨日 今日 明日
"""
_SINGLE = (
    "的地得了着过吗呢吧啊和与及或在是有不也都就还又很这那之其以于被把从到对给向请請找谁誰"
    "几哪我你他她它个個们們何はがをにのでともへやかねよだ"
)


def remove_stop_words(words: list[str]) -> list[str]:
    """Return the words that are not stop words, in order. Words are folded and in lower case."""
    stop = _latin(_language(words))
    if not all(map(str.isascii, words)):
        stop = stop | _other()
    return [word for word in words if without_accents(word) not in stop]


def _language(words: list[str]) -> str:
    """Return the European language with most of a query's stop words; English when in doubt."""
    best, most = "en", sum(without_accents(word) in _latin("en") for word in words)
    for name in _LATIN:
        # Most queries need no closer look at a language of which they have fewer than two words.
        if sum(word in _written(name) for word in words) < 2 and all(map(str.isascii, words)):
            continue
        found = [word for word in words if without_accents(word) in _latin(name)]
        # One stop word proves nothing ("die", "war", "son"), unless it has an accent.
        if len(found) > most and (len(found) > 1 or not found[0].isascii()):
            best, most = name, len(found)
    return best


@cache
def _written(name: str) -> frozenset[str]:
    """The stop words of a language as they are written, with accents."""
    return frozenset(_LATIN[name].split())


@cache
def _latin(name: str) -> frozenset[str]:
    return frozenset(map(without_accents, _written(name)))


@cache
def _other() -> frozenset[str]:
    return frozenset(map(without_accents, fold(" ".join(_OTHER.values())).split()))


def split_at_stop_words(run: str) -> list[str]:
    """Return the parts of a Chinese or Japanese text between stop words."""
    # The list is ordered by length, so that no word is cut by a shorter one.
    for word in _UNSPACED.split():
        if word in run:
            run = run.replace(word, " ")
    return run.split()


def are_stop_words(characters: str) -> bool:
    """Whether these Chinese or Japanese characters are all stop words or kana endings."""
    return all(c in _SINGLE or "\u3041" <= c <= "\u309f" for c in characters)
