"""The function words of the languages that keyword search knows: short lists of closed classes.

Articles, pronouns, prepositions, auxiliaries and question words: in a question they name
nothing, and they tell which language a text is in. Keys are ISO 639-1 codes.
"""

from __future__ import annotations

from typing import Final

ENGLISH: Final = "en"

# Languages of Latin letters; each has a Snowball stemmer. A tie goes to the one listed first.
LATIN_WORDS: Final = {
    "en": (
        "a an and are as at be been but by can could did do does for from had has have how i if "
        "in into is it its me my no not of on or our shall should so than that the their them "
        "then there these they this those to us was we were what when where which who whom "
        "whose why will with would you your about"
    ),
    "de": (
        "aber als am an auch auf aus bei beim bin bis da damit das dass dein dem den der des "
        "die dies diese diesem diesen dieser dieses doch du durch ein eine einem einen einer "
        "eines er es euch euer für gegen haben hat hatte hatten ich ihm ihn ihnen ihr ihre "
        "ihrem ihren im in ins ist ja kann kein keine können man mein mit muss nach nicht noch "
        "nur ob oder ohne sein seine seinem seinen sich sie sind so über um und uns unser "
        "unsere unter vom von vor wann war waren warum was welche welchem welchen welcher "
        "welches wem wen wenn wer werden wessen wie wieso wir wird wo wohin worden wurde wurden "
        "zu zum zur zwischen"
    ),
    "es": (
        "a al algo como con cual cuál cuáles cuando cuándo cuánto cuánta cuántos cuántas de del "
        "desde donde dónde e el él ella ellas ellos en entre era es esa ese eso está están esta "
        "este esto estos estas fue fueron ha había hay hasta la las le les lo los más me mi mis "
        "muy ni no nos nosotros nuestra nuestro o para pero por porque qué que quien quién "
        "quiénes se ser si sí sin sobre son su sus también tiene tienen tu tus u un una uno "
        "unos unas y ya yo"
    ),
    "fr": (
        "a ai au aux avec c ce cela ces cet cette comment d dans de depuis des dont du elle "
        "elles en est et été être eu fait il ils j je l la le les leur leurs lui m ma mais me "
        "mes moi mon n ne nos notre nous on ont ou où par pas plus pour pourquoi qu quand que "
        "quel quelle quelles quels qui quoi s sa sans se ses son sont sous sur t ta te tes toi "
        "ton tu un une vos votre vous y étaient était"
    ),
    "it": (
        "a ad agli ai al alla alle allo anche che chi ci ciò col come con cosa cui da dagli dai "
        "dal dalla dalle degli dei del della delle dello di dopo dove e è ed era erano fra fu "
        "gli ha hanno ho i il in io la le lei lo loro lui ma mi mia mio ne negli nei nel nella "
        "nelle nello noi non nostra nostro o per perché però più qual quale quali quando quanti "
        "quanto quella quello questa queste questi questo se si sia sono stata stato su sua sue "
        "sui sul sulla suo suoi ti tra tu tuo un una uno voi"
    ),
    "pt": (
        "a à ao aos as às até com como da das de dela dele do dos e é ela elas ele eles em "
        "entre era essa esse esta está este eu foi foram há isso isto já lhe mais mas me meu "
        "minha na nas não nem no nos nós nossa nosso num numa o onde os ou para pela pelas pelo "
        "pelos por porque qual quais quando quanto quantos que quem se sem ser seu seus são "
        "sobre sua suas também te tem têm teve tinha um uma você vocês"
    ),
    "nl": (
        "aan als bij dan dat de deze die dit door een en er geen had hadden heb hebben heeft "
        "het hij hoe hun ik in is je jij jullie kan kunnen maar me met mij mijn na naar niet "
        "nog of om ons onze ook op over te tegen tot uit uw van voor waar waarom wanneer was "
        "wat we welk welke werd wie wij worden wordt ze zich zij zijn zo zonder zou"
    ),
    "sv": (
        "alla att av blev bli de dem den denna deras dess det detta dig din du då efter eller "
        "en ett från för ha hade han har henne hennes hon honom hur här i icke inte jag kan man "
        "med mellan men mig min mot mycket när någon något och om oss på sedan sig sin sina "
        "sitt ska som så till under upp ut vad var vara varför vart vem vi vid vilka vilken "
        "vilket vår vårt är över"
    ),
    "da": (
        "af alle at blev blive da de dem den denne der deres det dette dig din disse du efter "
        "eller en end er et for fra ham han hans har havde hende hun hvad hvem hvilke hvilken "
        "hvilket hvis hvor hvordan hvorfor hvornår i ikke jeg kan kunne man med mellem men mig "
        "min mod ned noget nogle nu når og også om op os over på sig skal som så til ud under "
        "var ved vi vil vor være været"
    ),
    "no": (
        "at av ble bli da de dem den denne der deres det dette du eller en enn er et etter for "
        "fra ha hadde han har henne hun hva hvem hvilke hvilken hvilket hvis hvor hvordan "
        "hvorfor i ikke jeg kan kunne man med meg mellom men min mot noe noen nå når og også om "
        "opp oss over på seg skal som så til under ut var ved vi vil vår være vært"
    ),
    "fi": (
        "ei eivät en että ennen hän he ja jo joka jos jotka joten kanssa ketkä koska kuin "
        "kuinka kuka kun me mihin mikä millainen milloin minä missä mistä mitä mitkä mutta myös "
        "ne niin nyt ole oli olivat olla on ovat se sekä sen sinä sitä tai tämä tämän te tuo "
        "vai vain voi"
    ),
    "hu": (
        "a az azt de ebben egy ehhez én és ez ezek ezt fel ha hány hogy hogyan hol hová is ki "
        "kik kell le lesz meg melyik mely mert mi mikor milyen minden mint mit nem nincs ő ők "
        "össze s sem te ti után vagy van vannak volt voltak"
    ),
    "ro": (
        "a acest această acesta al ale am ar are au avea ca că când care ce cel cele cine cât "
        "cum cu dacă dar de despre din după ei ea el este eu fi fost în între la le lor lui mai "
        "mult ne nici nu o pe pentru prin sa să sau se și sunt te un unde unei unor unui va voi"
    ),
    "tr": (
        "ama ancak bana bazı ben benim bir biz bu bunu bunun çok çünkü da daha de değil diye "
        "dolayı en gibi hangi hem hep her için ile ise kadar ki kim kimin mi mı mu mü nasıl ne "
        "neden nerede nereye niçin o olan olarak oldu olduğu onlar onun sen siz şu tüm ve veya "
        "ya yok var"
    ),
}

# Their scripts tell them apart from those above, and Snowball serves one language a script.
OTHER_WORDS: Final = {
    "ru": (
        "а без бы был была были было быть в вам вас весь во вот все всё вы где да для до его ее "
        "её если есть еще ещё же за и из или им их к как какая какие какой каком какого ко "
        "когда кого кому кто куда ли между меня мне мы на над нам нас наш наша не него нее неё "
        "нет ни них но о об однако он она они оно от откуда по под почему при с сколько со так "
        "также такой там то того тоже той только том ты у уже чего чей чем что чтобы чья чьи "
        "эта эти это этого этой этом этот я"
    ),
    "hi": (
        "अगर अपना अपनी अपने आप इन इस इसका इसकी इसके उन उनका उनकी उनके उस उसका उसकी उसके एक और "
        "कब कभी कर करता करती करते करना का कि किन किस किसका किसकी किसके किसने किसे की कुछ के को "
        "कोई कौन कौनसा कौनसी क्या क्यों गई गए गया जब जहाँ जहां जा जाता जाती जाते जिस जो तक तब "
        "तो था थी थे द्वारा ने पर बहुत भी मुझे में मैं यह या ये रहा रही रहे लिए लिये वह वहाँ "
        "वहां वे से हम हमने हमारा हमारी हमारे हमें ही हुआ हुई हुए है हैं हो होता होती होते कहाँ "
        "कहां कितना कितनी कितने कैसा कैसी कैसे"
    ),
    "el": (
        "αν από για δεν είναι εκεί εμείς ένα ένας εσείς εγώ ή η ήταν θα και με μια να ο οι όπου "
        "όταν ότι που πού πόσα πώς πότε ποια ποιο ποιος προς σε στα στη στην στις στο στον "
        "στους τα της τη την τι τις το τον του τους των ως"
    ),
    "ar": (
        "أن أو أين أي إلى التي الذي أنا أنت إن بعد بين عن على عند في قد كان كانت كل كم كيف لا "
        "لم لن لماذا ما ماذا متى مع من نحن هذا هذه هل هناك هو هي و يكون"
    ),
}

# Function words that stand in English sentences, in names or in code as well.
_AMBIGUOUS: Final = (
    "ai ale am at bald bin care cat col com come comment con d da dam dan de dean den des die "
    "dig do door dos dove du e end era est et fi fit for fra fu fur ham han hat hem her hon hot "
    "im io je jo kan kim la lo ma mad man mas me men met min mint mir mist ml mod mot mu n nu "
    "num ok om on one op os ou over pa par pas per plus pour pro s sa se sea ser si sig sin son "
    "sui sur t ta te ten til to ton tot tu un up ut va van vast ved vi via vid war we wet will "
    "wit ya yo you"
)
AMBIGUOUS: Final = frozenset(_AMBIGUOUS.split())
