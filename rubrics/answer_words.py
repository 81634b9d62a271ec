"""The words by which answers are given, qualified and taken back: alternatives of patterns, in
English, German, French, Spanish, Chinese and Japanese; and options whose own word is the name of a
field: `correct: no`, `pass - false`, `"relevant": true`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass


def _of(*languages: str) -> str:
    return "|".join(languages)


NOUNS = _of(
    r"answer|rating|label|score|grade(?! level)|verdict|choice|category|judge?ment|decision|"
    r"selection",
    r"winner|classification|conclusion|result|evaluation|assessment|option chosen",
    r"chosen option|option",
    r"antwort|bewertung|wertung|note|urteil|ergebnis|wahl|entscheidung|punktzahl|einstufung",
    r"kategorie|einschätzung|gesamtbewertung|gesamtnote|endnote|option",
    r"réponse|notation|évaluation|choix|jugement|catégorie|décision|résultat",
    r"respuesta|puntuación|puntaje|calificación|nota|elección|veredicto|decisión|valoración",
    r"evaluación|categoría|resultado|opción elegida|opción",
    "答案|回答|评分|評分|得分|评级|选择|選擇|结论|结果|判断|判定|分数|评价|打分|等级|标签|选项",
    "答え|正解|評価|スコア|結論|結果|点数|評点|選択|ラベル|採点|レーティング",
)
"""Nouns for an answer when it is announced, and its field in a JSON object."""

OWN = _of(
    r"the|my|our|final|overall|correct|best|chosen|selected|total|own|meine?|die|das|der|finale|"
    r"endgültige|abschließende|gesamte|richtige|korrekte|beste|gewählte",
    r"ma|mon|la|le|l['’]|bonne|meilleure|finale?|globale?|définitive|mi|el|final|definitiva|global",
    "最终的|最終的な|正确的?|正確な?|最终|最後|最后|最終|我的|私の|总体|總體|総合|综合|整体",
)
"""Words that may come before such a noun."""
AFTER_NOUN = r"finale?|définitive|definitiva|correct[ea]|choisie|elegida|global|globale"

IS = _of(
    r"is|would be|should be|must be|ist|lautet|wäre|est|serait|es|sería",
    "是|为|為|は|が",
)
MEANS = r":|=|->|=>|→|⇒|\|"
"""Marks between the noun and the answer."""

THUS = _of(
    r"so|thus|therefore|hence|overall|then|finally|accordingly|consequently|in conclusion|"
    r"in summary|in short|all in all|given (?:this|that|all this)|"
    r"i (?:think|believe|conclude)(?: that)?|in my (?:view|opinion|judge?ment)",
    r"somit|daher|also|insgesamt|deshalb|folglich|damit|zusammenfassend|fazit",
    r"donc|ainsi|par conséquent|en conclusion|en somme|au total|globalement",
    r"por (?:lo )?tanto|así que|en conclusión|en resumen|en definitiva|por ende",
    "我认为|我觉得|因此|所以|综上所述|综上|总之|故|よって|したがって|以上より|以上から|ゆえに|そのため",
)
"""Words that may lead to an answer in its sentence."""

CHOSEN = _of(
    r"(?:i|we)\s*(?:['’](?:d|ll|m|ve)|would|will|must|have to|am|have)?\s*(?:therefore|thus|"
    r"ultimately|finally|hence|also)?\s*(?:say|choose|chose|chosen|pick|select|give|rate|score|"
    r"grade|"
    r"label|assign|answer|judge|call|classify|conclude with|opt for|vote for|award|"
    r"(?:go|going|settle|settling|went) (?:with|on|for))"
    r"(?:\s+(?:it|this|that|the response|this response|this one))?"
    r"(?:\s+(?:as|at|with|an?|the|overall))*"
    r"(?:\s+(?:rating|score|grade|label|option|answer)(?: of)?)?",
    r"(?:this|it|the response|this response) (?:(?:would|should|can|could) be|is|was) "
    r"(?:rated|scored|graded|labell?ed|classified)(?:\s+(?:as|at|an?))*",
    r"(?:this|it|that|the response|this response)(?: |(?=['’]s))"
    r"(?:['’]s|gets|receives|deserves|earns|merits|rates|is|scores)"
    r"(?:\s+(?:an?|as|at|the))*(?:\s+(?:rating|score|grade)(?: of)?)?",
    r"(?:die|diese) antwort (?:erhält|bekommt|verdient)(?:\s+(?:eine?|die|note))*",
    r"ich würde(?:\s+(?:die antwort|diese antwort|dies|es|sie|das|mit|als|eine?|option))*",
    r"ich (?:wähle|vergebe|gebe|sage|nehme|würde sagen|bewerte (?:dies|das|die antwort|sie|es) mit|"
    r"entscheide mich für)(?:\s+(?:die|eine?|dafür|ihr|der antwort|note|option|wertung))*",
    r"(?:je|j['’])\s*(?:choisis|donne|dirais|attribue|note|sélectionne|mets|opte pour|lui donne)"
    r"(?:\s+(?:la|l['’]|une?|note|option|de|(?:à )?cette réponse))*",
    r"(?:yo )?(?:elijo|escojo|doy|le doy|diría|asigno|selecciono|otorgo|me quedo con|opto por|"
    r"le asigno)(?:\s+(?:la|una?|opción|puntuación|nota|calificación|de))*",
    "我(?:会)?(?:选择|選擇|选|给出|给(?:这个|该)?(?:回答|回复|答案)?(?:打|评)?|打|评为|判为|的选择是)(?:选项|它)?",
)
"""Verbs for choosing an option."""
CHOSEN_AFTER = (
    "を選(?:びます|択します|ぶ|択する)|と(?:評価|判断|判定)(?:します|する)|です|"
    "だと(?:考えます|思います)"
)

MARKED = _of(
    r"option|choice|category|level|number|kategorie|stufe|l['’]option|opción|categoría|nivel",
    "选项|類別|选|オプション|選択肢|カテゴリー?",
)
"""Words that may come directly before a key."""

BECAUSE = _of(
    r"because\b|since\b|as\b|for\b|given\b|due\b|weil\b|da\b|denn\b|parce\b|car\b|puisque\b|"
    r"porque\b|"
    r"ya que\b|pues\b|dado\b",
    "因为|因為|由于|なぜなら|理由|です|だ|と|，|。",
)

UNITS = r"points?|pts?|stars?|punkten?|sternen?|étoiles?|puntos?|estrellas?|分|点|點|星|級|级"
OUT_OF = r"/|out\s+of|of|von|aus|sur|sobre|de|su|em"

SURE = _of(
    r"confidence|certainty|sureness|how sure|sicherheit|konfidenz|gewissheit|confiance|certitude|"
    r"confianza|certeza|seguridad",
    "置信度|确信度|確信度|信心|把握|自信度|信頼度",
)
"""A quantity that is never the answer."""

SUPPOSED = _of(
    r"if|unless|had|would have|were|suppose|assuming|whether|might|could|may",
    r"wenn|falls|wäre|hätte|könnte|si|sauf|aurait|pourrait|fuera|hubiera|podría",
    "如果|假如|若|除非|可能|もし|なら|かもしれ",
)
SAID = _of(
    r"says?|said|saying|states?|stated|claims?|claimed|tells?|told|ask(?:s|ed)?|demands?|demanded|"
    r"instructs?|instructed|instructions?|orders?|ordered|requests that|"
    r"requested that|insists?|urges?|quotes?|quoted|reads|"
    r"ends? with|contains?|includes?|inject\w*|embedded|according to|"
    r"examples?|e\.g|for instance|such as|format|template|schema|required|wants?|wanted|"
    r"suggests?|suggested|begins? with|hidden|appended|another (?:grader|rater|judge)|others?|"
    r"someone|author|pretends?|asserts?|declares?|recommends?|proposes?|writes?|wrote|written|"
    r"tempt\w*|at first|initial\w*|first (?:impression|instinct|thought|glance)|previous|earlier|"
    r"rates itself|own words|quot(?:e|ing)|(?:bottom|end|copy) of|adds|clos(?:ing|es)|ending|"
    r"concluding|"
    r"(?:wraps|winds) up|bears|shows|tagged|footer|signature|p\.s|excerpt|text(?=\s*:?\s*\Z)|"
    r"(?:last|final) (?:line|words?|sentence|thing)|"
    r"expected?|anchor|default|no longer|not|never|cannot|can['’]t|won['’]t|don['’]t|isn['’]t|"
    r"wouldn['’]t|ruled out|reject\w*|exclud\w*|disregard\w*|ignor\w*|wrong|incorrect",
    r"letzten? (?:zeile|worte|satz)|schlusszeile|(?:am|zum) (?:ende|schluss)|schließt|zitat|"
    r"sagt|sagte|behauptet|fordert|verlangt|schreibt|steht|laut|beispiel|zunächst|zuerst|nicht|"
    r"kein\w*|falsch|enthält|endet|anweisung|format",
    r"dit|affirme|demande|exige|prétend|selon|exemple|d['’]abord|pas|jamais|faux|contient|format",
    r"dice|afirma|pide|exige|según|ejemplo|primero|no|nunca|incorrect[oa]|contiene|formato",
    "声称|要求|写道|写着|指示|例如|比如|格式|起初|最初|不是|并非|不|没有|"
    "主張|要求|指示|例えば|形式|最初|当初|ではない|と書|ません",
)
"""Words that ascribe an answer to somebody else, or deny it."""
ENDING = _of(
    r"(?:ends?|ending|clos(?:es|ing)|concludes|finish(?:es|ing)|signs off)"
    r"(?: (?:in|on|with|by|as follows|the|its|own|a|line|words?|sentence|remark|reads|"
    r"writing|saying))*",
    r"(?:last|final|closing) (?:lines?|words?|sentence|thing)(?: (?:of|in) (?:the|"
    r"this) \w+| \w+ says)?"
    r"(?: (?:is|are|reads))?",
    r"(?:text|response|answer|material) (?:to be|being) (?:rated|graded|judged)",
    r"endet(?: (?:mit|auf))?|schließt(?: mit(?: den worten)?)?|letzte (?:zeile|worte)(?: \w+ \w+)?",
)
"""Words after which stands what the rated text ends with."""

BACK = _of(
    r"wait|hold on|hm+|scratch|strike that|second thoughts?|on reflection|reflecting|upon|"
    r"re-?consider\w*|re-?think\w*|re-?evaluat\w*|re-?assess\w*|re-?read\w*|re-?visit\w*|"
    r"let me (?:re\w*|correct|fix|change|think|double)|correction|corrected|revis(?:e|ed|ing|ion)|"
    r"i (?:meant|mean|misread|retract|withdraw|was wrong|made a|take (?:it|that|this) back)|"
    r"chang(?:e|ed|ing) (?:my|it|this|that|to)|change of mind|my mistake|oops|never ?mind|"
    r"(?:disregard|ignore) (?:that|this|it|my|the (?:above|previous))|not right|updat(?:e|ed)|"
    r"(?:is|was|be|seems|looks?|feels?|'s|’s) (?:wrong|incorrect|mistaken|too (?:high|low|harsh|"
    r"lenient|strict|generous|severe))|actually,? no|edit:|no,|nope|"
    r"which i (?:disregard|ignore|reject)|i disagree|"
    r"(?:said|says) (?:the|this)|is what (?:the|it|they)|"
    r"placeholder|just kidding|not my (?:final )?(?:answer|rating|label|verdict)|"
    r"better (?:answer|rating|label|choice|option|fit)|instead|mak(?:e|ing) (?:it|that)",
    r"moment|warte|korrektur|korrigier\w*|ich ändere|bei näherer|überleg\w*|vielmehr|besser gesagt|"
    r"nein,|revidier\w*|überdenk\w*|nochmals?|doch eher|doch nicht|stattdessen",
    r"attende[zr]|attends|réflexion|je (?:change|corrige|révise|me ravise)|non,|tout compte fait|"
    r"en fait|à bien y|je rectifie|rectification",
    r"espera|esperen|corrección|corrijo|pensándolo|cambio mi|mejor dicho|en realidad|rectifico|"
    r"no,|reconsider\w*|pensando mejor|me corrijo",
    "等等|等一下|不对|不對|更正|重新|再想|改为|改成|改選|改选|其实|其實|应该是|修正|仔细想|想了想|"
    "我改|不,|待って|いや|訂正|やはり|やっぱり|考え直|再考|変更|実は|よく考え|直し",
)
"""After an answer: it is taken back."""

YES = _of(
    r"yes|yep|yeah|y|true|t|absolutely|definitely|ja|wahr|oui|vrai|sí|si|verdadero",
    "是|对|はい",
)
NO = _of(
    r"(?:absolutely|definitely|certainly|probably|clearly) not|not at all|not really|not|no way|"
    r"no es|"
    r"no|nope|nah|n|false|f|never|none|negative|hardly|wrong|nein|nicht|nie|niemals|keineswegs|"
    r"kaum|"
    r"falsch|non|faux|jamais|nunca|falso",
    "否|不是|不|いいえ",
)
YES_MARKS, NO_MARKS = "✅|✓|✔|☑|👍", "❌|✗|✘|✖|☒|🚫|👎"
"""What affirms or denies an option whose word stands before it as the name of a field."""
DENIES = _of(
    r"not|\w*n['’]t|no|none|never|nothing|nor|neither|without|lacks?|fails?|failed|wrong|incorrect|"
    r"false|hardly|barely|rarely|seldom|partial\w*|partly|mostly|somewhat|slightly|maybe|perhaps|"
    r"possibly|n/?a|unclear|unknown|unsure|low|little|minimal|free of|see|score|unlikely|nicht|"
    r"kein\w*|nie|ohne|falsch|kaum|teilweise|pas|jamais|"
    r"faux|nunca|sin|falso",
    "不|没|否|ない",
)
"""In what follows such a name: it may be meant as a denial, so that it decides nothing."""
FAULTS = _of(
    r"errors?|issues?|problems?|mistakes?|violations?|flaws?|faults?|concerns?|miss\w*|omi[ts]\w*|"
    r"contradict\w*|hallucinat\w*|unsupported|inaccura\w*|harm\w*|unsafe|toxic\w*|offen[cds]\w*|"
    r"bias\w*|hate\w*|abus\w*|attack\w*|slurs?|insult\w*|fabricat\w*|deviat\w*|leaks?",
    r"fehler\w*|probleme?|mängel|verstöße?|widersprüch\w*|schädlich\w*",
    r"erreurs?|problèmes?|errores|problemas?",
)
"""What a good answer does without."""
NEGATIVE = r"no|not?\W.+|fail(?:s|ed)?|false|wrong|bad|reject(?:s|ed)?|nein|falsch|schlecht"
"""Options that deny by themselves, so that a denial after them may be their reason."""

PERHAPS = _of(
    r"actually|rather|maybe|perhaps|possibly|probably|closer|lean\w*|might|could|should|would|"
    r"alternatively|final\w*|revised|so|therefore|thus|hence|better|best|ultimately|overall|"
    r"conclusion|correct|right|also|equally|even|either|or|prefer\w*|arguably|borderline|nearly|"
    r"almost|i['’]d|i|my",
    r"vielleicht|eher|eigentlich|sondern|besser|oder|richtig|also|daher|peut-être|plutôt|mieux|ou|"
    r"donc|finalement|quizás?|tal vez|mejor|o|más bien|correcta?",
    "但|也许|可能|或|更|かも|むしろ|より良|正しい|所以|因此",
)
"""Words that, in a sentence naming another option, mean that it may be the answer."""

NOT_AS_WORDS = _of(
    r"is|was|are|be|it|then|than|would|will|seems?|should|may|might|could|must|can|fits?|matches|"
    r"captures?|reflects?|describes?|works|applies|feels|looks|sounds|better|best|instead|overall|"
    r"after|for|from|now|and|or|to|because|since|as|at|with|if|please|has to|had|wins?|it|more|too|"
    r"rather|sir|again|also|either|though|but|however|actually|final(?:ly)?|correct|right|"
    r"points?|stars?|out|here|there|in|on|by|ist|wäre|passt|oder|und|bis|weil|est|serait|ou|et|"
    r"es|sería|o|y|"
    r"de|von|sur|sobre|punkte|puntos|i|not",
)
"""After a key these do not make it a count or a subject."""

SIDES = _of(
    r"dialog(?:ue)?s?|responses?|prompts?|sides?|texts?|essays?|versions?|conversations?|assistant|"
    r"model|stor(?:y|ies)|candidate|case|dialogs?|seite|texte?|diálogo|texto|caso",
    "对话|對話|回复|回應|文本|対話|応答|ダイアログ|レスポンス|対話文",
)
CRITERIA = _of(
    r"tone|style|clarity|grammar|spelling|fluency|accuracy|relevance|coherence|helpfulness|"
    r"politeness|"
    r"safety|content|form|length|format|structure|readability|effort|originality|stil|ton|klarheit|"
    r"grammatik|rechtschreibung|inhalt|länge|aufbau",
)
"""What else than the rubric a score may be for."""
TENS = "seven|nine|ten|twenty|hundred|sieben|neun|zehn|hundert|dix|diez|cent|cien"
PLACES = (
    r"page|section|paragraph|step|line|point|sentence|argument|reason|part|item|bullet|chapter|"
    r"no\.|"
    r"absatz|abschnitt|seite|punkt|satz|párrafo|paragraphe|página|第"
)
NOT_MEANT = _of(
    r"(?:(?<!why )(?<!if )(?<!or )not|n['’]t|never|nor|neither|than|versus|vs\.?|unlike|"
    r"instead of|rather than|compared (?:to|with)|short of|below|above|beyond",
    r"nicht|keine?|statt|anstatt|plutôt que|plus que|moins que|pas|más que|menos que|en lugar de|"
    r"ni|不是|而不是|并非|而非)"
    r"\s*(?:(?:an?|the|be|to|option|rating|score|label|of|quite|really|fully|as|true|eine?n?|une?|"
    r"un|es|la|l['’]|choose|rate|give|is)\s*)*",
)
"""Directly before a key: it is not meant."""


# ---- options as names of fields -----------------------------------------------------------------
_SEPARATES = r"(?:[:=→|>?]|->)"
_ENDS = (
    r"(?![\w'’])(?=[\"'”’`]*\s*(?:\Z|[\n.!;,)}\]<|(#\u2013\u2014]|-\s|"
    rf"(?:{BECAUSE})))(?!\s*(?:[/|,]|(?:or|oder)\b)?\s*(?:{YES}|{NO})(?!\w))"
)
_VALUE = (
    rf"(?P<value>(?:(?P<yes>{YES})|(?P<no>{NO})){_ENDS}|"
    rf"(?P<done>{YES_MARKS}|\[x\])|(?P<open>{NO_MARKS}|\[ \]))"
)
_FIGURE = r"[\s\d.,/%]+|\s*(?:it|this|that|es|das) \w+(?: not| nicht|n['’]t)\W*"
_FIRST = r"(?P<first>(?:^|[{,<])[\s>•|\"'#–-]*(?:\d+[.)]\s*)?(?:is[_ ])?)?"
_FAULT = re.compile(rf"(?:{FAULTS})", re.IGNORECASE)
_NO_FAULT = re.compile(
    rf"(?<!\w)(?:{DENIES})\W+(?:\w+\W+){{0,4}}?(?:{FAULTS})(?!\w)", re.IGNORECASE
)
_DENIED = re.compile(
    r"\W*(?:not|nicht|pas|never|nie|no (?:it|this|that|he|she|they|we|i|the)\b|nothing|none|"
    r"(?:it|this|that|es|das) \w+(?: not|n['’]t))\b",
    re.IGNORECASE,
)
"""What follows an option for a fault, and may deny it."""


@dataclass(frozen=True, slots=True)
class FieldsRead:
    """A reply whose fields are read: the `text` without them, with the words that a yes affirms in
    their place; the options that the fields `give` and `deny`; `unclear` if one decides nothing.
    """

    text: str
    give: frozenset[str] = frozenset()
    deny: frozenset[str] = frozenset()
    unclear: bool = False


class FieldNames:
    """The options of a rubric as names of fields; both mappings lead to keys.

    >>> fields = FieldNames({"pass": "pass", "fail": "fail"}, {})
    >>> fields.read("pass - no reason given").unclear, sorted(fields.read("pass: no").give)
    (True, ['fail'])
    """

    def __init__(self, by_fold: Mapping[str, str], by_name: Mapping[str, str]) -> None:
        self._of = {**by_name, **by_fold}
        self._keys = list(by_fold.values())
        polar = self._polar = re.compile(rf"{YES}|{NO}", re.IGNORECASE)
        self._words = {
            word
            for word in self._of
            if re.search(r"[^\W\d_]{2}", word) and not polar.fullmatch(word)
        }
        known = sorted(filter(None, self._of), key=len, reverse=True)
        any_word = "|".join(map(re.escape, known)) or "(?!)"
        word = rf"(?<![\w-])(?P<word>{any_word})(?![\w-])"
        flags = re.IGNORECASE | re.MULTILINE
        self._bare = re.compile(rf"{_FIRST}{word}(?P<sep>[^\w+]{{1,12}}?){_VALUE}", flags)
        self._before = re.compile(rf"(?:{NO_MARKS})\s*{word}", flags)
        self._open = re.compile(
            rf"{_FIRST}{word}[\"']?\s*(?P<sep>[:=→]|->|[\u2013\u2014]|-(?=\s))(?P<rest>\s*[^\n]*)",
            flags,
        )

    def read(self, text: str) -> FieldsRead:
        """Return the reply with its fields read."""
        give: set[str] = set()
        deny: set[str] = set()
        unclear = False

        def bare(match: re.Match[str]) -> str:
            nonlocal unclear
            word, sep, first = match["word"], match["sep"], match["first"]
            strong = bool(re.search(_SEPARATES, sep)) or '"' in sep
            if not strong and self._of.get(match["value"].casefold()) == self._of[word.casefold()]:
                return match[0]
            negative = self._is_negative(word)
            yes = bool(match["yes"] or match["done"])
            mark = bool(match["done"] or match["open"]) and not strong and match["value"] != "[ ]"
            if word.casefold() not in self._words:
                if mark and (yes or negative):
                    return f"{first or ''}{word}"
                if "?" in sep or (self._polar.fullmatch(word) and not (strong or mark)):
                    return match[0]
                unclear = True
                return ""
            key = self._of[word.casefold()]
            if (yes and not sep.startswith('"')) or (negative and mark):
                return f"{first or ''}{word}"
            unclear = unclear or first is None or not strong or (negative and not yes)
            (give if yes else deny).add(key)
            return ""

        def before(match: re.Match[str]) -> str:
            nonlocal unclear
            if self._is_negative(match["word"]):
                return match["word"]
            unclear = True
            return ""

        def opened(match: re.Match[str]) -> str:
            nonlocal unclear
            word = match["word"].casefold() in self._words
            figure = re.fullmatch(_FIGURE, match["rest"]) and match["sep"] in ":=→"
            if match["first"] is None or (self._is_reason(match) if word else not figure):
                return match[0]
            unclear = True
            return ""

        text = self._bare.sub(bare, text)
        text = self._before.sub(before, text)
        text = self._open.sub(opened, text)
        if deny and not give and not unclear and len(self._keys) == 2:
            give |= {*self._keys} - deny
        return FieldsRead(text, frozenset(give), frozenset(deny), unclear)

    def _is_negative(self, word: str) -> bool:
        """Return True if an option denies by itself, as "incorrect" and "fail" do."""
        folded = word.casefold()
        if re.fullmatch(NEGATIVE, folded):
            return True
        return any(folded.endswith(each) for each in self._words if each != folded)

    def _is_reason(self, match: re.Match[str]) -> bool:
        """Return True if what follows an option's word leaves it an answer: "Pass: no errors"."""
        word, rest = match["word"], match["rest"].strip()
        if rest.strip(" .()[]\"'").casefold() in self._of:
            return True
        first = re.split(r"(?<=[.!?])\s", rest)[0]
        length = len(re.findall(r"\w+", first))
        value = rf"\W*(?:{YES}|{NO})\W*(?:\Z|[.,;:!)\]/|]|or\b|oder\b)"
        if length < 2 or re.match(value, rest, re.IGNORECASE) or "?" in first:
            return False
        if self._names_another(word, first):
            return False
        of_fault = self._is_negative(word) or bool(_FAULT.fullmatch(word))
        if re.match(r"\W*\d", rest):  # a count of faults, or else a score
            return of_fault and bool(re.match(r"\W*[1-9]\d* [^\W\d]", rest)) and length == 2
        denies = re.search(rf"(?<!\w)(?:{DENIES})(?!\w)", first, re.IGNORECASE)
        if not denies:
            return True
        denies_fault = bool(_NO_FAULT.search(first))
        if not of_fault:
            return denies_fault
        return not denies_fault and length > 2 and not _DENIED.match(rest)

    def _names_another(self, word: str, sentence: str) -> bool:
        """Return True if a sentence has the word of another option than this one."""
        key = self._of[word.casefold()]
        others = [each for each in self._words if self._of[each] != key and word not in each]
        spoken = "|".join(map(re.escape, others)) or "(?!)"
        return bool(re.search(rf"(?<!\w)(?:{spoken})(?!\w)", sentence, re.IGNORECASE))
